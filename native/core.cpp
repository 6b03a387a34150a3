// mercer._core: the compiled part of the engine.
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace {

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#elif defined(_MSC_VER)
    return "msvc " + std::to_string(_MSC_VER);
#else
    return "unknown compiler";
#endif
}

std::string standard() {
#if defined(_MSVC_LANG)
    const long value = _MSVC_LANG;
#else
    const long value = __cplusplus;
#endif
    return "C++" + std::to_string(value / 100 % 100);
}

std::string optimisation() {
#if defined(NDEBUG)
    return "release";
#else
    return "assertions on";
#endif
}

std::string describe() { return compiler() + ", " + standard() + ", " + optimisation(); }

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled part of mercer's engine.";
    m.def("describe", &describe, "Compiler, C++ standard and build type, as one line of text.");
}
