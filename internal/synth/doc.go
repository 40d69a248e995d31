// Package synth writes GGUF files with random weights, in the shapes of published models and in the
// mixes of formats of llama.cpp's quantizer. Such a file takes the memory and the time of the real
// one and answers with made-up words, so a machine can be measured without a download.
//
// The package does not open or run models.
package synth
