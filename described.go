package realizar

// Description returns a description of the model as [Describe] does, without Path, Windows,
// Tokenizer, Plan and the chat templates. It is cheap. The values in Metadata must not be modified.
func (m *Model) Description() *Description {
	meta := m.file.Meta()
	d := &Description{
		Format: m.file.Format().String(), FileBytes: m.file.Size(), Architecture: m.arch.Architecture, Dimensions: dimensions(&m.arch.Spec),
	}
	d.Name, _ = meta.String("general.name")
	d.Dimensions.Encoder = m.arch.Program.Whole
	d.readTensors(m.file)
	for _, key := range meta.Keys() {
		v, _ := meta.Value(key)
		d.Metadata = append(d.Metadata, MetadataEntry{Key: key, Type: meta.Type(key), Value: v})
	}
	if m.hasDefaults {
		d.Sampling = new(m.defaults)
	}
	return d
}
