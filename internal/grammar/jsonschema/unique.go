package jsonschema

type uniqueState struct{}

func (f *arrayForm) uniqueAlive(uniqueState) bool { return true }

func (c *compiler) checkUnique(f *arrayForm, path string) error {
	return &UnsupportedError{"uniqueItems", path, "todo"}
}
