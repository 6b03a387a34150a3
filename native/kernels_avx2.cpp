// The kernels for AVX2.
#define MERCER_ISA avx2
#define MERCER_VECTOR_BYTES 32
#define MERCER_PANEL_VECTORS 3
#define MERCER_GROUP 4
#include "kernels.hpp"

mercer::Table mercer_table_avx2() { return avx2::table("avx2"); }
