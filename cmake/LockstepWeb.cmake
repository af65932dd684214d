# What the pages of reports are made of, as C headers in LS_WEB_FOLDER (LS_WEB_HEADERS are made by the build): style.h
# from web/style, script.h from web/report.ts.  TypeScript is bundled by esbuild; without it the pages have no script.
set(LS_WEB_FOLDER ${CMAKE_BINARY_DIR}/web)
set(LS_WEB_HEADERS ${LS_WEB_FOLDER}/script.h)
ls_texts(${LS_WEB_FOLDER}/style.h ${CMAKE_SOURCE_DIR}/web/style)

find_program(ESBUILD esbuild)
mark_as_advanced(ESBUILD)
if(ESBUILD)
    file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/*.ts)
    add_custom_command(OUTPUT ${LS_WEB_HEADERS}
        COMMAND ${ESBUILD} ${CMAKE_SOURCE_DIR}/web/report.ts --bundle --minify --target=es2019 --charset=utf8
                --log-level=warning --outfile=${LS_WEB_FOLDER}/report.js
        COMMAND ${CMAKE_COMMAND} -DTEXT=${LS_WEB_FOLDER}/report.js -DNAME=report_script -DHEADER=${LS_WEB_HEADERS}
                -P ${CMAKE_SOURCE_DIR}/cmake/LockstepTexts.cmake
        DEPENDS ${scripts} ${CMAKE_SOURCE_DIR}/cmake/LockstepTexts.cmake
        COMMENT "Bundling web/report.ts" VERBATIM)
    message(STATUS "Lockstep: pages of reports are interactive (${ESBUILD})")
else()
    ls_write_changed(${LS_WEB_HEADERS} "static const char report_script[] = \"\";\n")
    message(STATUS "Lockstep: pages of reports have no interaction (esbuild not found; scripts/setup installs it)")
endif()
