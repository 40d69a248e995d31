package arch

// shareKV makes the last n layers attend to the keys and values of the last layer before them that
// has the same window or none (Brandon et al., "Reducing Transformer Key-Value Cache Size with
// Cross-Layer Attention", 2024).
func (s *Spec) shareKV(c *config, n int) {
	if n == 0 {
		return
	}
	first := len(s.Windows) - n
	last := map[int]int{} // by window: the last layer before first
	for i, w := range s.Windows {
		if i < first {
			last[w] = i
		}
		from, ok := last[w]
		if !ok {
			c.failf("layer %d has no layer of its kind before the last %d, which share keys and values", i, n)
		}
		if i < first {
			from = i
		}
		s.KVFrom = append(s.KVFrom, from)
	}
}
