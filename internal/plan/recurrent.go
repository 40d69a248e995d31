package plan

// RecurrentChunk is the number of tokens in a chunk of a recurrent layer. Such a layer has a state
// per sequence with [State.Every] of so many tokens, which is the state of [Node.State], and an
// exact state per token with chunks of so many tokens, which its attribute names. It computes every
// row from the state at the beginning of the row's chunk and the rows of the chunk, so the bits of a
// row do not depend on how its sequence was cut into steps.
const RecurrentChunk = 64
