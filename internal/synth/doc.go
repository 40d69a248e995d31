// Package synth makes model files of random weights in the shapes of published
// models and in the mixes of formats that llama.cpp's quantizer makes of them. They
// take the memory and the time that the real files take, and what they say is
// made-up words: with them a machine can be measured without a download.
//
// The package knows shapes, mixes and how GGUF spells a model. It opens and runs
// nothing.
package synth
