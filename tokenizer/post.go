package tokenizer

// postProcessor puts special tokens around a sequence, template by template.
type postProcessor []template

// template is the ids before and after a sequence.
type template struct{ before, after []int32 }

// apply returns ids with the special tokens around them, or as they are without addSpecial. It may
// use the memory of ids.
func (p postProcessor) apply(ids []int32, addSpecial bool) []int32 {
	if !addSpecial {
		return ids
	}
	for _, t := range p {
		if len(t.before) > 0 {
			around := make([]int32, 0, len(t.before)+len(ids)+len(t.after))
			ids = append(append(around, t.before...), ids...)
		}
		ids = append(ids, t.after...)
	}
	return ids
}
