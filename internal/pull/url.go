package pull

import (
	"context"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/store"
)

func (p *Puller) pullURL(ctx context.Context, n names.Name) error {
	size, err := p.Client.Size(ctx, p.Client.HTTP, n.URL)
	if err != nil {
		return err
	}
	f := store.File{Name: n.File(), Size: size, Digest: fetch.SHA256(n.SHA256)}
	if !strings.HasSuffix(f.Name, ".gguf") {
		f.Name = "model.gguf" // opening the file reports whether it is a GGUF
	}
	pull, err := p.Store.PullOwn(ctx)
	if err != nil {
		return err
	}
	defer pull.Release()
	manifest, config, err := store.Pack([]store.File{f})
	if err != nil {
		return err
	}
	if _, err := pull.WriteBlob(config); err != nil {
		return err
	}
	if err := p.download(ctx, pull, []remote{{f, n.URL, p.Client.HTTP}}); err != nil {
		return err
	}
	return pull.Finish(ctx, n, manifest)
}
