package cpu

// attentionKernels are the inner loops of attention.
type attentionKernels struct{}

var attentionGeneric attentionKernels
