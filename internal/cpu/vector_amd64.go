package cpu

var vectorAVX2, vectorAVX512 = vectorGeneric, vectorGeneric
