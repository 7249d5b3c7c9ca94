# What an install and a package hold. Component runtime: the program, manual pages, configs, schemas and documentation.
# Component dev: one static library of all folders below the command line, its headers and pipesched.pc.
get_property(_folders GLOBAL PROPERTY PS_FOLDERS)
list(REMOVE_ITEM _folders ps_cli)
set(_objects "")
foreach(_folder IN LISTS _folders)
  list(APPEND _objects "$<TARGET_OBJECTS:${_folder}>")
endforeach()
add_library(pipesched_library STATIC ${_objects})
set_target_properties(pipesched_library PROPERTIES OUTPUT_NAME pipesched LINKER_LANGUAGE C)

# The prefix is told from where the file lies, so that a moved or staged install works as it is.
file(RELATIVE_PATH PS_PC_TO_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PS_PC_TO_PREFIX "${PS_PC_TO_PREFIX}")
configure_file(cmake/pipesched.pc.in pipesched.pc @ONLY)

install(TARGETS pipesched RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
foreach(_section 1 5)
  install(DIRECTORY docs/man/ DESTINATION "${CMAKE_INSTALL_MANDIR}/man${_section}" COMPONENT runtime
          FILES_MATCHING PATTERN "*.${_section}")
endforeach()
install(DIRECTORY configs DESTINATION "${CMAKE_INSTALL_DATADIR}/pipesched" COMPONENT runtime)
install(DIRECTORY docs/schema DESTINATION "${CMAKE_INSTALL_DATADIR}/pipesched" COMPONENT runtime
        FILES_MATCHING PATTERN "*.json")
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" COMPONENT runtime FILES_MATCHING PATTERN "*.md"
        PATTERN man EXCLUDE PATTERN schema EXCLUDE)
install(TARGETS pipesched_library ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(DIRECTORY include/pipesched "${PROJECT_BINARY_DIR}/include/pipesched"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_BINARY_DIR}/pipesched.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "The pipesched authors <pipesched@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME pipesched)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpipesched-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libcjson-dev, libglpk-dev, libhwloc-dev, libexpat1-dev, libmd-dev")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Command line tool, manual pages, configurations and schemas.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Static library and headers.")
include(CPack)
