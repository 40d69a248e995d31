package modelfile

// headerMemory limits the memory, in bytes, allocated for the headers of all files of a model, or
// for its index of shards. A vocabulary of 262,144 tokens with a million merges takes 50 MB.
// 140,000 tensors, more than any model has, take 65 MB.
const headerMemory = 90 << 20

// An allowance limits the memory allocated for untrusted input. A few bytes of text can expand to
// many bytes of memory, so the length of the text alone is no bound.
type allowance struct {
	most  int64 // bytes
	spent int64
}

// spend counts an allocation of n bytes and reports whether it is allowed.
func (a *allowance) spend(n int64) bool {
	if n > a.most-a.spent {
		return false
	}
	a.spent += n
	return true
}

// textBytes returns the bytes that a copy of n bytes of text takes. The allocator rounds up.
func textBytes(n int) int64 { return 16 + int64(n) + int64(n)/8 }
