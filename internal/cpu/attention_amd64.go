package cpu

var attentionAVX2, attentionAVX512 = attentionGeneric, attentionGeneric
