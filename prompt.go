package realizar

// PromptTokens are the ids that [Model.Generate] runs for r.
func (m *Model) PromptTokens(r *Request) ([]int32, error) { return m.promptTokens(r) }
