# What this build is, in a few lines.
message(STATUS "")
message(STATUS "pipesched ${PROJECT_VERSION} (${CMAKE_BUILD_TYPE}, ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION})")
message(STATUS "  cJSON ${cjson_VERSION}, GLPK ${GLPK_VERSION}, hwloc ${hwloc_VERSION}, Expat ${expat_VERSION}, popt ${popt_VERSION}, libmd ${libmd_VERSION}")
message(STATUS "  warnings as errors ${PIPESCHED_WERROR}, sanitizers [${PIPESCHED_SANITIZE}], coverage ${PIPESCHED_COVERAGE}")
message(STATUS "  tests ${BUILD_TESTING}, benchmarks ${PIPESCHED_BENCH}, fuzz targets ${PIPESCHED_FUZZ}")
message(STATUS "")
