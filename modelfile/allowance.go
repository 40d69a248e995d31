package modelfile

// headerMemory is the most memory that may be allocated for what the headers of all
// files of a model say, or its index of shards. A vocabulary of 262,144 tokens with
// a million merges takes 50 MB, and 140,000 tensors, more than any model has, take
// 65 MB.
const headerMemory = 90 << 20

// An allowance is how much memory may be allocated for what somebody else's text
// holds. A few bytes of text can stand for many more of memory, so that the length
// of the text alone is no bound.
type allowance struct {
	most  int64 // bytes
	spent int64
}

// spend counts n bytes that are to be allocated, and reports whether they may be.
func (a *allowance) spend(n int64) bool {
	if n > a.most-a.spent {
		return false
	}
	a.spent += n
	return true
}

// textBytes is what a copy of n bytes of text takes: the allocator rounds up.
func textBytes(n int) int64 { return 16 + int64(n) + int64(n)/8 }
