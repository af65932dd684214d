# How every file of Lockstep is compiled: target ls_compiler, and the flags of the vector kernels.

# Contraction of a*b+c into a fused multiply-add is the compiler's choice unless forbidden, and would make
# results depend on compiler and flags.  Kernels that want FMA ask for it with intrinsics.
add_library(ls_compiler INTERFACE)
target_compile_options(ls_compiler INTERFACE
    -Wall -Wextra -Wconversion
    -ffp-contract=off -fno-math-errno -fno-semantic-interposition
    -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/= # messages name src/trials/vit.c, wherever it was built
    $<$<BOOL:${LS_WERROR}>:-Werror>)
target_compile_definitions(ls_compiler INTERFACE _GNU_SOURCE)
target_compile_features(ls_compiler INTERFACE c_std_17)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# No -DNDEBUG: LS_BUG_IF never depends on it, and a stray assert must not vanish either.
# -g1: places in the source for back traces and profilers.  Where variables are would cost a third of the time to compile; the
# preset debug has that.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g3")

if(LS_SANITIZE)
    target_compile_definitions(ls_compiler INTERFACE LS_SANITIZED)
    target_compile_options(ls_compiler INTERFACE
        -fsanitize=${LS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(ls_compiler INTERFACE -fsanitize=${LS_SANITIZE})
endif()

# Everything runs on any x86-64; files named *_avx2.c, *_avx512.c, *_avx512bf16.c and *_amx.c hold code for
# wider vectors and for tiles that is called only after the processor was asked.
function(ls_set_vector_flags)
    set(avx2 -mavx2 -mfma -mf16c)
    set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
    foreach(source IN LISTS ARGN)
        if(source MATCHES "_avx512\\.c$")
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512}")
        elseif(source MATCHES "_avx512bf16\\.c$")
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512bf16")
        elseif(source MATCHES "_amx\\.c$")
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512};-mamx-tile;-mamx-bf16")
        elseif(source MATCHES "_avx2\\.c$")
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx2}")
        endif()
    endforeach()
endfunction()
