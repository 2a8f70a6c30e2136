template <> __global__ void t<int>(int* y) { *y = 2; }
template <class T> using V = T;
using namespace std;
typedef struct { int a; } A, *B;
class C;
int a = 1 < 2, b(3), c{4};
