# The flags of every target of ours, and the folder libraries of DESIGN.md section 2.
add_library(ps_flags INTERFACE)
target_compile_features(ps_flags INTERFACE c_std_17)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(ps_flags INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(ps_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wvla -Wformat=2
  -Wundef -ffp-contract=off)
if(PIPESCHED_WERROR)
  target_compile_options(ps_flags INTERFACE -Werror)
endif()
if(PIPESCHED_SANITIZE)
  target_compile_options(ps_flags INTERFACE -fsanitize=${PIPESCHED_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(ps_flags INTERFACE -fsanitize=${PIPESCHED_SANITIZE})
  # Instrumentation hides ranges of values from gcc, which then warns of what cannot happen.
  target_compile_options(ps_flags INTERFACE
    $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation> $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(PIPESCHED_FUZZ)
  target_compile_options(ps_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(PIPESCHED_COVERAGE)
  target_compile_options(ps_flags INTERFACE --coverage -fprofile-update=atomic) # threads count too
  target_link_options(ps_flags INTERFACE --coverage)
endif()
# Under the address sanitizer every allocation of an arena is a malloc of its own, so that overruns are seen.
string(FIND "${PIPESCHED_SANITIZE}" "address" _address)
if(_address GREATER -1)
  target_compile_definitions(ps_flags INTERFACE PS_ARENA_EACH_MALLOC=1)
else()
  target_compile_definitions(ps_flags INTERFACE PS_ARENA_EACH_MALLOC=0)
endif()
target_include_directories(ps_flags INTERFACE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/include")

# ps_folder(NAME FOLDERS ... SOURCES ... LIBRARIES ...): one static library a folder of src/, which links what the
# folder may include and the third-party libraries it wraps. Tests link only the folder they test.
function(ps_folder name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;SOURCES;LIBRARIES" ${ARGN})
  add_library(ps_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(ps_${name} PRIVATE ps_flags)
  foreach(folder IN LISTS ARG_FOLDERS)
    target_link_libraries(ps_${name} PUBLIC ps_${folder})
  endforeach()
  target_link_libraries(ps_${name} PUBLIC ${ARG_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY PS_FOLDERS ps_${name})
endfunction()
