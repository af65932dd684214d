# The module lockstep-cuda.so (src/backend/cuda/module), where CUDA's compiler, cuBLASLt and cuDNN are found.
#
# LS_CUDA: auto builds it where it can be built (with gcc, and not under sanitizers, which do not know device memory),
# on fails where it cannot, off leaves it out.  LS_CUDA_ARCHS lists architectures as CMAKE_CUDA_ARCHITECTURES does: 90 is
# machine code for compute capability 9.0 and code that newer ones compile for themselves.  None is older: clusters of blocks
# and kernels that begin early are not asked for by name.
set(LS_CUDA auto CACHE STRING "Build the module for NVIDIA GPUs: auto, on or off")
set(LS_CUDA_ARCHS 90 CACHE STRING "Architectures that kernels for NVIDIA GPUs are compiled for")

# ls_cuda_missing(<result>): what keeps the module from being built, or nothing.
function(ls_cuda_missing result)
    find_program(LS_NVCC nvcc HINTS /usr/local/cuda/bin)
    get_filename_component(root "${LS_NVCC}" REALPATH)
    get_filename_component(root "${root}" DIRECTORY)
    get_filename_component(root "${root}" DIRECTORY)
    find_path(CUDA_INCLUDE cuda_runtime_api.h HINTS ${root}/include)
    find_library(CUDART_LIBRARY cudart_static HINTS ${root}/lib64 ${root}/lib)
    find_path(CUBLASLT_INCLUDE cublasLt.h HINTS ${root}/include)
    find_library(CUBLASLT_LIBRARY NAMES cublasLt libcublasLt.so.13 HINTS ${root}/lib64 ${root}/lib)
    find_path(CUDNN_INCLUDE cudnn.h HINTS ${root}/include)
    find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${root}/lib64 ${root}/lib)
    mark_as_advanced(LS_NVCC CUDA_INCLUDE CUDART_LIBRARY CUBLASLT_INCLUDE CUBLASLT_LIBRARY CUDNN_INCLUDE CUDNN_LIBRARY)
    set(missing "")
    if(NOT LS_NVCC)
        set(missing "nvcc was not found")
    elseif(NOT CUDA_INCLUDE OR NOT CUDART_LIBRARY)
        set(missing "CUDA's runtime library was not found")
    elseif(NOT CUBLASLT_INCLUDE OR NOT CUBLASLT_LIBRARY)
        set(missing "cuBLASLt was not found")
    elseif(NOT CUDNN_INCLUDE OR NOT CUDNN_LIBRARY)
        set(missing "cuDNN was not found")
    elseif(LS_SANITIZE)
        set(missing "not under sanitizers")
    elseif(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set(missing "with gcc only")
    endif()
    set(${result} "${missing}" PARENT_SCOPE)
endfunction()

function(ls_cuda_module)
    set(root ${CMAKE_SOURCE_DIR}/src/backend/cuda/module)
    file(GLOB kernels CONFIGURE_DEPENDS ${root}/*.cu)
    file(GLOB sources CONFIGURE_DEPENDS ${root}/*.c)

    # Kernels of instructions that one compute capability alone has say so in their name; on others they are not called.
    file(GLOB kernels_90a CONFIGURE_DEPENDS ${root}/*_90a.cu)
    list(REMOVE_ITEM kernels ${kernels_90a})

    add_library(cuda_kernels OBJECT ${kernels})
    add_library(cuda_kernels_90a OBJECT ${kernels_90a})
    set_target_properties(cuda_kernels PROPERTIES CUDA_ARCHITECTURES "${LS_CUDA_ARCHS}")
    set_target_properties(cuda_kernels_90a PROPERTIES CUDA_ARCHITECTURES 90a-real)
    foreach(target cuda_kernels cuda_kernels_90a)
        set_target_properties(${target} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
            POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden)
        target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
        # A sum of products may be contracted on the device: tests state the tolerance.
        target_compile_options(${target} PRIVATE -Xcompiler=-Wall,-Wextra $<$<BOOL:${LS_WERROR}>:-Werror=all-warnings>)
    endforeach()

    add_library(module_cuda MODULE ${sources} $<TARGET_OBJECTS:cuda_kernels> $<TARGET_OBJECTS:cuda_kernels_90a>)
    set_target_properties(module_cuda PROPERTIES PREFIX "" OUTPUT_NAME lockstep-cuda C_VISIBILITY_PRESET hidden
        LINKER_LANGUAGE CXX INSTALL_RPATH_USE_LINK_PATH ON)
    target_include_directories(module_cuda PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_include_directories(module_cuda SYSTEM PRIVATE ${CUDA_INCLUDE} ${CUBLASLT_INCLUDE} ${CUDNN_INCLUDE})
    target_link_libraries(module_cuda PRIVATE ls_compiler ${CUBLASLT_LIBRARY} ${CUDNN_LIBRARY} ${CUDART_LIBRARY}
        Threads::Threads rt dl)
    install(TARGETS module_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
endfunction()

# gpu-idle.so (bench/gpu_idle.c), where CUPTI is found: CUDA loads it into a program whose GPU is to be watched.
function(ls_gpu_idle)
    get_filename_component(root "${CUDA_INCLUDE}" DIRECTORY)
    find_path(CUPTI_INCLUDE cupti.h HINTS ${CUDA_INCLUDE} ${root}/extras/CUPTI/include)
    find_library(CUPTI_LIBRARY cupti HINTS ${root}/lib64 ${root}/lib ${root}/extras/CUPTI/lib64)
    mark_as_advanced(CUPTI_INCLUDE CUPTI_LIBRARY)
    if(CUPTI_INCLUDE AND CUPTI_LIBRARY)
        add_library(gpu_idle MODULE ${CMAKE_SOURCE_DIR}/bench/gpu_idle.c)
        set_target_properties(gpu_idle PROPERTIES PREFIX "" OUTPUT_NAME gpu-idle)
        target_include_directories(gpu_idle SYSTEM PRIVATE ${CUDA_INCLUDE} ${CUPTI_INCLUDE})
        target_link_libraries(gpu_idle PRIVATE ls_compiler ${CUPTI_LIBRARY} Threads::Threads)
    endif()
endfunction()

set(missing "is not wanted") # any text that CMake does not take for false
if(NOT LS_CUDA STREQUAL "off")
    ls_cuda_missing(missing)
    if(missing AND LS_CUDA STREQUAL "on")
        message(FATAL_ERROR "LS_CUDA=on, but ${missing}")
    endif()
endif()
if(NOT missing)
    foreach(arch ${LS_CUDA_ARCHS})
        string(REGEX MATCH "^[0-9]+" number "${arch}")
        if(number AND number LESS 90)
            message(FATAL_ERROR "LS_CUDA_ARCHS=${LS_CUDA_ARCHS}: kernels need compute capability 9.0 or more")
        endif()
    endforeach()
    set(CMAKE_CUDA_COMPILER ${LS_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${LS_CUDA_ARCHS})
    set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -lineinfo")
    enable_language(CXX CUDA)
    ls_cuda_module()
    ls_gpu_idle()
    set(missing "${LS_CUDA_ARCHS} (${LS_NVCC})")
endif()
message(STATUS "Lockstep: CUDA ${missing}")
