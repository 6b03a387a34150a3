// The kernels for AVX512.
#define MERCER_ISA avx512
#define MERCER_VECTOR_BYTES 64
#define MERCER_PANEL_VECTORS 3
#define MERCER_GROUP 8
#include "kernels.hpp"

mercer::Table mercer_table_avx512() { return avx512::table("avx512"); }
