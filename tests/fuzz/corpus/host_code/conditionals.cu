#ifdef __CUDACC__
extern "C" {
#else
extern "C++" {
#endif
__constant__ float weights[9];
int (*table[2])(int) = {nullptr, nullptr};
}
#if 0
} } }
#elif defined(X) // comment
/* open "
*/
#endif
enum class Kind : int { kA = 1, kB };
struct S { S() : a(1), b{2} {} int a, b; ~S() = default; bool operator()(int) const; };
bool S::operator()(int x) const { return x < 3 && x > 1 ? true : false; }
auto f = [](int x) { return x; };
static const char* text = R"x(a " } ) )x" "\"}" u8"{";
