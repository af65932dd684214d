# What Lockstep is linked with: target ls_dependencies.
#
# Required: jansson, xxHash, libyaml, zlib, libjpeg-turbo, libpng, threads, libm.  Optional: OpenMP (else our own thread
# pool), oneDNN (else only our own kernels), HDF5 (else data of that kind is refused), PMIx and libsodium (else ranks on
# one machine, or under mpirun and srun, only).
add_library(ls_dependencies INTERFACE)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
target_link_libraries(ls_dependencies INTERFACE Threads::Threads m)

# ls_find(<VAR> <header> <library>): sets <VAR>_INCLUDE and <VAR>_LIBRARY in the cache.
function(ls_find var header library)
    find_path(${var}_INCLUDE ${header})
    find_library(${var}_LIBRARY ${library})
    mark_as_advanced(${var}_INCLUDE ${var}_LIBRARY)
endfunction()

# ls_use(<VAR> <definition> <result>): links with what was found as <VAR> and says so in <result>, or "not found".
function(ls_use var definition result)
    set(${result} "not found" PARENT_SCOPE)
    if(${var}_INCLUDE AND ${var}_LIBRARY)
        target_include_directories(ls_dependencies SYSTEM INTERFACE ${${var}_INCLUDE})
        target_link_libraries(ls_dependencies INTERFACE ${${var}_LIBRARY})
        target_compile_definitions(ls_dependencies INTERFACE ${definition})
        set(${result} "${${var}_LIBRARY}" PARENT_SCOPE)
    endif()
endfunction()

function(ls_require var header library package)
    ls_find(${var} ${header} ${library})
    if(NOT ${var}_INCLUDE OR NOT ${var}_LIBRARY)
        message(FATAL_ERROR "${header} or lib${library} not found: install ${package} (or run scripts/setup)")
    endif()
    target_include_directories(ls_dependencies SYSTEM INTERFACE ${${var}_INCLUDE})
    target_link_libraries(ls_dependencies INTERFACE ${${var}_LIBRARY})
endfunction()

ls_require(JANSSON jansson.h jansson libjansson-dev)
ls_require(XXHASH xxhash.h xxhash libxxhash-dev)
ls_require(YAML yaml.h yaml libyaml-dev)
ls_require(ZLIB zlib.h z zlib1g-dev)
ls_require(JPEG jpeglib.h jpeg libjpeg-dev)
ls_require(PNG png.h png libpng-dev)

# oneDNN's library uses libgomp.  Clang's own OpenMP runtime beside it would mean two sets of threads, and
# ThreadSanitizer cannot see into libgomp; those builds use our pool.
if(NOT LS_PARALLEL_PTHREAD AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    find_package(OpenMP COMPONENTS C)
endif()
if(OpenMP_C_FOUND)
    target_link_libraries(ls_dependencies INTERFACE OpenMP::OpenMP_C)
    set(LS_PARALLEL "openmp")
else()
    target_compile_definitions(ls_dependencies INTERFACE LS_PARALLEL_PTHREAD)
    set(LS_PARALLEL "pthread")
endif()

set(LS_ONEDNN "off")
if(LS_WITH_ONEDNN)
    ls_find(ONEDNN oneapi/dnnl/dnnl.h dnnl)
    ls_use(ONEDNN LS_HAVE_ONEDNN LS_ONEDNN)
endif()

# Debian's serial library has a name of its own; elsewhere it is called hdf5.
set(LS_HDF5 "off")
if(LS_WITH_HDF5)
    find_path(HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
    find_library(HDF5_LIBRARY NAMES hdf5_serial hdf5)
    mark_as_advanced(HDF5_INCLUDE HDF5_LIBRARY)
    ls_use(HDF5 LS_HAVE_HDF5 LS_HDF5)
endif()

# MPI is not linked with: the module lockstep-mpi.so is, and it is loaded when it is asked for.
set(LS_MPI "off")
if(LS_WITH_MPI)
    find_package(MPI QUIET COMPONENTS C)
    set(LS_MPI_FOUND ${MPI_C_FOUND})
    set(LS_MPI "not found")
    if(MPI_C_FOUND)
        set(LS_MPI "${MPI_C_COMPILER}")
    endif()
endif()

# For several machines: PMIx tells MPI who the ranks are (a module), libsodium authenticates the machines.
# Debian keeps PMIx in a folder of its own.
set(LS_PMIX "not found")
set(pmix_folder /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2)
find_path(PMIX_INCLUDE pmix_server.h HINTS ${pmix_folder}/include)
find_library(PMIX_LIBRARY pmix HINTS ${pmix_folder}/lib)
mark_as_advanced(PMIX_INCLUDE PMIX_LIBRARY)
if(PMIX_INCLUDE AND PMIX_LIBRARY)
    add_library(ls_pmix INTERFACE)
    target_include_directories(ls_pmix SYSTEM INTERFACE ${PMIX_INCLUDE})
    target_link_libraries(ls_pmix INTERFACE ${PMIX_LIBRARY})
    set(LS_PMIX "${PMIX_LIBRARY}")
endif()
set(LS_SODIUM "not found")
ls_find(SODIUM sodium.h sodium)
if(SODIUM_INCLUDE AND SODIUM_LIBRARY)
    target_include_directories(ls_dependencies SYSTEM INTERFACE ${SODIUM_INCLUDE})
    target_link_libraries(ls_dependencies INTERFACE ${SODIUM_LIBRARY})
    set_source_files_properties(src/launch/auth.c PROPERTIES COMPILE_DEFINITIONS LS_HAVE_SODIUM)
    set(LS_SODIUM "${SODIUM_LIBRARY}")
endif()

# The same for pkg-config: the library is a static one, so that a program needs all of them.
set(LS_PC_LIBRARIES "-pthread -lm -ldl")
foreach(library "${JANSSON_LIBRARY}" "${XXHASH_LIBRARY}" "${YAML_LIBRARY}" "${ZLIB_LIBRARY}" "${JPEG_LIBRARY}"
        "${PNG_LIBRARY}" "${LS_ONEDNN}" "${LS_HDF5}" "${LS_SODIUM}")
    if(EXISTS "${library}")
        string(PREPEND LS_PC_LIBRARIES "${library} ")
    endif()
endforeach()
if(OpenMP_C_FOUND)
    string(APPEND LS_PC_LIBRARIES " ${OpenMP_C_FLAGS}")
endif()

message(STATUS "Lockstep: threads ${LS_PARALLEL}, oneDNN ${LS_ONEDNN}, HDF5 ${LS_HDF5}, PMIx ${LS_PMIX}, libsodium ${LS_SODIUM}, MPI ${LS_MPI}")
