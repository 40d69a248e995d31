package realizar

// Description is what the files of an opened model say, as [Describe] reads it, without
// Path, Windows, Tokenizer, Plan and what templates there are. It may be asked for often. What
// Metadata holds may not be written to.
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
