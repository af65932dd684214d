# Files that become strings of the program.  They stay files: compilers, formatters and readers see them as they are.

# ls_text_string(<file> <name> <result>): the C definition of a string <name> with the file's text.
function(ls_text_string file name result)
    file(READ ${file} text)
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    set(${result} "static const char ${name}[] =\n    \"${text}\";\n" PARENT_SCOPE)
endfunction()

# ls_write_changed(<file> <content>): a new date would compile everything again.
function(ls_write_changed file content)
    set(before "")
    if(EXISTS ${file})
        file(READ ${file} before)
    endif()
    if(NOT before STREQUAL content)
        file(WRITE ${file} "${content}")
    endif()
endfunction()

# ls_texts(<header> <folder>): writes a C header with every file of the folder as a string, skeleton_trial_c for
# <skeleton>/trial.c.
function(ls_texts header folder)
    get_filename_component(prefix ${folder} NAME)
    file(GLOB texts CONFIGURE_DEPENDS ${folder}/*)
    set(content "/* Written by the build from the files in ${prefix}/. */\n")
    foreach(file IN LISTS texts)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
        get_filename_component(name ${file} NAME)
        string(MAKE_C_IDENTIFIER "${prefix}_${name}" name)
        ls_text_string(${file} ${name} text)
        string(APPEND content "${text}")
    endforeach()
    ls_write_changed(${header} "${content}")
endfunction()

# As a script, at build time: cmake -DTEXT=<file> -DNAME=<name> -DHEADER=<header> -P LockstepTexts.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
    ls_text_string(${TEXT} ${NAME} content)
    file(WRITE ${HEADER} "${content}")
endif()
