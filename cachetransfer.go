package realizar

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A CacheExport holds pages of a model's KV cache in host memory, so that another process that runs
// the same model can import them, see [Model.ExportCache].
type CacheExport struct{ pages *engine.Export }

// ExportCache holds the cached pages of a prompt in [Options.HostCache], and copies those to it that
// it does not have. The caller releases the result. salt is the prompt's [Generation.Salt]. Exports
// and imports hold at most half of HostCache at a time.
//
// The other process finds the pages under the same [Model.CacheName] alone, and takes them with
// [Model.ImportCache].
func (m *Model) ExportCache(ctx context.Context, prompt []int32, salt string) (*CacheExport, error) {
	if err := m.transfers(); err != nil {
		return nil, err
	}
	x, err := m.engine.Export(ctx, prompt, salt)
	if err != nil {
		return nil, wrap(err)
	}
	return &CacheExport{x}, nil
}

// Tokens returns how many of the prompt's first tokens the pages hold.
func (x *CacheExport) Tokens() int { return x.pages.Tokens() }

// Bytes returns the size of the pages.
func (x *CacheExport) Bytes() int64 { return int64(x.pages.Bytes()) }

// Read calls do with the pages that are not of the first skip tokens, in the order in which
// [Model.ImportCache] wants them. They do not change until do returns. The context of do ends when
// the model is closed, which waits for do.
func (x *CacheExport) Read(ctx context.Context, skip int, do func(ctx context.Context, pages [][]byte) error) error {
	return x.pages.Read(ctx, skip, do)
}

// Release gives the pages up.
func (x *CacheExport) Release() { x.pages.Release() }

// ImportCache adds pages of the prompt's first tokens to the KV cache. They must be those of an
// export with the same [Model.CacheName]. ImportCache calls fill with the number of tokens that are
// cached already and the memory for the pages of the others. If fill returns an error, nothing is
// imported. The context of fill ends when the model is closed, which waits for fill.
func (m *Model) ImportCache(ctx context.Context, prompt []int32, salt string, tokens int, fill func(ctx context.Context, skip int, pages [][]byte) error) error {
	if err := m.transfers(); err != nil {
		return err
	}
	if err := m.checkPrompt(prompt); err != nil {
		return err
	}
	if err := m.engine.Import(ctx, prompt, salt, tokens, fill); err != nil {
		return wrap(err)
	}
	return nil
}

// CacheName identifies the pages of the prompt's first tokens by all that they depend on: the
// tokens, the salt and [Model.CacheIdentity]. Equal names mean equal pages, bit for bit.
func (m *Model) CacheName(prompt []int32, salt string, tokens int) [sha256.Size]byte {
	h := sha256.New()
	h.Write(m.identity[:])
	b := binary.BigEndian.AppendUint64(nil, uint64(m.arch.Program.LengthClass(len(prompt))))
	b = binary.BigEndian.AppendUint64(b, uint64(len(salt)))
	h.Write(append(b, salt...))
	b = b[:0]
	for _, id := range prompt[:max(0, min(tokens, len(prompt)))] {
		b = binary.BigEndian.AppendUint32(b, uint32(id))
	}
	h.Write(b)
	return [sha256.Size]byte(h.Sum(nil))
}

// CacheIdentity names all that the values in the KV cache depend on besides tokens: the model's
// weights and settings, the number formats, the kind of device, and this program's version. It is
// empty without [Options.TransferCache].
func (m *Model) CacheIdentity() string {
	if m.transfers() != nil {
		return ""
	}
	return hex.EncodeToString(m.identity[:16])
}

func (m *Model) transfers() error {
	if m.identity == [sha256.Size]byte{} {
		return fmt.Errorf("realizar: %w: the KV cache of this model cannot be transferred; open it with TransferCache (--kv-transfer) and HostCache (--kv-host)", ErrOptions)
	}
	return nil
}

// identify computes the digest of all that pages depend on besides tokens.
func (m *Model) identify(ctx context.Context, p *memory.Planner, o *Options, size *engine.Config) error {
	if !o.TransferCache {
		return nil
	}
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%q %q %q %q %v %v %q\n", programVersion(), p.Device.Name(), p.Device.Description(), cmp.Or(o.Kernels, cpu.Tiers()[0]), size.Cache, size.Activations, m.arch.Architecture))
	l := size.Limits(p.Program)
	for g := range p.Program.Groups {
		n, err := l.PageBytes(p.Program, g)
		if err != nil {
			return err
		}
		h.Write(fmt.Appendf(nil, "%d bytes, %+v\n", n, p.Program.Groups[g]))
	}
	for _, f := range m.files {
		meta := f.Meta()
		for _, key := range slices.Sorted(slices.Values(meta.Keys())) {
			v, _ := meta.Value(key)
			h.Write(fmt.Appendf(nil, "%q %s\n", key, printed(v)))
		}
	}
	sums, err := m.digests(ctx)
	for _, s := range sums {
		h.Write(s)
	}
	m.identity = [sha256.Size]byte(h.Sum(nil))
	return err
}

// printed returns the text of a value of metadata, without addresses.
func printed(v any) string {
	m, ok := v.(*modelfile.Meta)
	if !ok {
		return fmt.Sprintf("%T %v", v, v)
	}
	text := "{"
	for _, key := range m.Keys() {
		v, _ := m.Value(key)
		text += fmt.Sprintf("%q %s ", key, printed(v))
	}
	return text + "}"
}

// digests returns the digest of each tensor of the model's files, by file in the order of their names.
func (m *Model) digests(ctx context.Context) ([][]byte, error) {
	var all []*tensor.Tensor
	for _, f := range m.files {
		all = append(all, slices.SortedFunc(slices.Values(f.Tensors()), func(a, b *tensor.Tensor) int { return cmp.Compare(a.Name, b.Name) })...)
	}
	sums := make([][]byte, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range all {
		group.Go(func() error {
			return m.files.Guard(func() error {
				h := sha256.New()
				h.Write(fmt.Appendf(nil, "%q %v %v\n", t.Name, t.DType, t.Shape))
				err := t.EachRows(func(_ int, rows []byte) error {
					h.Write(rows)
					return ctx.Err()
				})
				sums[i] = h.Sum(nil)
				return err
			})
		})
	}
	return sums, group.Wait()
}

// programVersion names the build: its version and revision.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := info.GoVersion + " " + info.Main.Version + " " + info.Main.Sum
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			text += " " + s.Value
		}
	}
	return text
}
