/* Forgets what sets.h defined for one instruction set. */

#undef NAME
#undef WIDTH
#undef HIGH
#undef WIDE
#undef TALL
#undef SIDE
#undef SPARE
#undef SET
#undef FMA
#undef ROOT
#undef ROOTS
