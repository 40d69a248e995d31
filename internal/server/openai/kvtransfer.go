package openai

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/realizar/realizar/internal/kvtransfer"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// blockTokens is the number of tokens of a block in kv_transfer_params.
const blockTokens = 32

// transferParams are kv_transfer_params, as vLLM's connectors have them.
type transferParams struct {
	decodes, prefilled bool // elsewhere
	engine             string
	offer              kvtransfer.Offer
}

var transferFields = fields.List[transferParams]{
	fields.Flag("do_remote_decode", "false", func(p *transferParams) *bool { return &p.decodes }),
	fields.Flag("do_remote_prefill", "false", func(p *transferParams) *bool { return &p.prefilled }),
	fields.New("remote_block_ids", "a list of whole numbers", "none", func(p *transferParams, v json.RawMessage) error {
		ids, err := fields.ReadIDs(v)
		p.offer.Tokens = len(ids) * blockTokens
		return err
	}),
	fields.Text("remote_engine_id", "none", func(p *transferParams) *string { return &p.engine }),
	fields.Text("remote_request_id", "none", func(p *transferParams) *string { return &p.offer.ID }),
	fields.Text("remote_host", "none", func(p *transferParams) *string { return &p.offer.Host }),
	fields.Whole("remote_port", "none", 1, math.MaxUint16, func(p *transferParams) *int { return &p.offer.Port }),
	fields.Flag("remote_tls", "false", func(p *transferParams) *bool { return &p.offer.TLS }),
	fields.Ignored[transferParams]("remote_num_tokens"), // remote_block_ids has their number
	fields.Ignored[transferParams]("tp_size"),           // these are of vLLM's processes; realizar's are alone
	fields.Ignored[transferParams]("dcp_size"),
	fields.Ignored[transferParams]("pp_size"),
	fields.Ignored[transferParams]("remote_blocks_expiry_time"),
	fields.Ignored[transferParams]("transfer_mode"),
	fields.Ignored[transferParams]("transfer_id"),
}

func readTransfer(s *settings, v json.RawMessage) error {
	const name = "kv_transfer_params"
	if v[0] != '{' {
		return fields.ErrWrong
	}
	var p transferParams
	if err := transferFields.Decode(&p, v, name); err != nil {
		return err
	}
	switch {
	case p.decodes && p.prefilled:
		return fields.Invalid(name, "%s has both do_remote_decode and do_remote_prefill; the first is for the server that runs the prompt, the second for the one that answers", name)
	case p.decodes:
		s.transfer = &server.KVTransfer{Offer: true}
	case p.prefilled && (p.offer.Host == "" || p.offer.Port == 0 || p.offer.ID == "" || p.engine == ""):
		return fields.Invalid(name, "%s has do_remote_prefill without remote_host, remote_port, remote_engine_id or remote_request_id; send what the other server answered", name)
	case p.prefilled:
		s.transfer = &server.KVTransfer{From: &p.offer, Identity: p.engine}
	}
	return nil
}

// settleTransfer checks the transfer against the other settings of a request with a number of
// prompts.
func (t *settings) settleTransfer(x *server.Exchange, prompts int) error {
	switch {
	case t.transfer == nil:
		return nil
	case prompts > 1:
		return fields.Invalid("kv_transfer_params", "kv_transfer_params are of one prompt, and the request has %d; send a request for each", prompts)
	case t.transfer.Offer && t.stream:
		return fields.Invalid("kv_transfer_params", "kv_transfer_params with do_remote_decode come with answers that are not streams; leave out stream")
	}
	if err := x.CheckTransfer(t.transfer); err != nil {
		return fields.Invalid("kv_transfer_params", "%v", err)
	}
	return nil
}

// appendTransfer appends the offer of the prompt's pages if the request asked for it, or null if
// there is none.
func (w *writer) appendTransfer(b []byte, o *kvtransfer.Offer) []byte {
	if t := w.settings.transfer; t == nil || !t.Offer {
		return b
	}
	b = append(b, `,"kv_transfer_params":`...)
	if o == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[`...)
	for i := range o.Tokens / blockTokens {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	b = jsontext.AppendString(append(b, `],"remote_engine_id":`...), w.x.Model().CacheIdentity())
	b = jsontext.AppendString(append(b, `,"remote_request_id":`...), o.ID)
	b = jsontext.AppendString(append(b, `,"remote_host":`...), o.Host)
	b = jsontext.AppendInt(append(b, `,"remote_port":`...), o.Port)
	b = jsontext.AppendInt(append(b, `,"tp_size":1,"remote_num_tokens":`...), o.Tokens)
	if o.TLS {
		b = append(b, `,"remote_tls":true`...)
	}
	return append(b, '}')
}
