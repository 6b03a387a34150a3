// The kernels for the instruction set every machine of this kind has.
#define MERCER_ISA baseline
#define MERCER_VECTOR_BYTES 16
#define MERCER_PANEL_VECTORS 3
#define MERCER_GROUP 4
#include "kernels.hpp"

mercer::Table mercer_table_baseline() { return baseline::table("baseline"); }
