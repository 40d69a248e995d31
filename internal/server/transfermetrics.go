package server

import (
	"github.com/realizar/realizar/internal/kvtransfer"
	"github.com/realizar/realizar/internal/server/promtext"
)

// transferNumbers are about transfers of the KV cache.
var transferNumbers = []number[kvtransfer.Stats]{
	{promtext.Gauge("realizar_kv_transfer_offers_held", "Prompts whose pages are held for another server."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Held) }},
	{promtext.Counter("realizar_kv_transfer_offers_total", "Prompts whose pages were offered to another server."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Offers) }},
	{promtext.Counter("realizar_kv_transfer_offers_expired_total", "Offers that no server took in time."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Expired) }},
	{promtext.Counter("realizar_kv_transfer_sent_total", "Transfers to other servers."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Done) }},
	{promtext.Counter("realizar_kv_transfer_sent_failures_total", "Transfers to other servers that failed, and connections that were refused."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Failed) }},
	{promtext.Counter("realizar_kv_transfer_sent_bytes_total", "Bytes of pages sent to other servers."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Sent.Bytes) }},
	{promtext.Counter("realizar_kv_transfer_sent_seconds_total", "Seconds of transfers to other servers."),
		func(s *kvtransfer.Stats) float64 { return s.Sent.Time.Seconds() }},
	{promtext.Counter("realizar_kv_transfer_received_total", "Transfers from other servers."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Received.Done) }},
	{promtext.Counter("realizar_kv_transfer_received_failures_total", "Transfers from other servers that failed; the prompts were computed here."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Received.Failed) }},
	{promtext.Counter("realizar_kv_transfer_received_bytes_total", "Bytes of pages received from other servers."),
		func(s *kvtransfer.Stats) float64 { return float64(s.Received.Bytes) }},
	{promtext.Counter("realizar_kv_transfer_received_seconds_total", "Seconds of transfers from other servers."),
		func(s *kvtransfer.Stats) float64 { return s.Received.Time.Seconds() }},
}
