package span

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Exporter sends spans to a store by OTLP over HTTP. It counts spans that could not be sent, and logs that at most once per
// tellEvery.
type Exporter struct {
	sdktrace.SpanExporter

	what   string // which spans, for the log
	log    *slog.Logger
	lost   atomic.Int64
	told   atomic.Int64 // when a failure was last logged, in nanoseconds since 1970
	failed atomic.Bool  // the last call of the store failed
}

const (
	queueSpans   = 2048
	batchSpans   = 256
	batchTime    = 500 * time.Millisecond
	exportTime   = 5 * time.Second
	retryFirst   = 500 * time.Millisecond
	retryLongest = 2 * time.Second
	tellEvery    = time.Minute
)

// NewExporter returns an Exporter that sends spans to an address. what says in the log which spans. It does not call the store.
func NewExporter(ctx context.Context, what, address string, headers map[string]string, client *http.Client, log *slog.Logger) (*Exporter, error) {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(address), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithTimeout(exportTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: retryFirst, MaxInterval: retryLongest, MaxElapsedTime: exportTime}))
	if err != nil {
		return nil, fmt.Errorf("preparing the export of spans: %w", err)
	}

	return &Exporter{SpanExporter: exporter, what: what, log: log}, nil
}

// Batched returns the option that sends ended spans in batches.
func (e *Exporter) Batched() sdktrace.TracerProviderOption {
	return sdktrace.WithBatcher(e, sdktrace.WithMaxQueueSize(queueSpans), sdktrace.WithMaxExportBatchSize(batchSpans),
		sdktrace.WithBatchTimeout(batchTime), sdktrace.WithExportTimeout(exportTime))
}

// Lost returns how many spans could not be sent. It does not count spans that did not fit into the queue.
func (e *Exporter) Lost() int64 { return e.lost.Load() }

// Failed reports whether the last call of the store failed.
func (e *Exporter) Failed() bool { return e.failed.Load() }

// Called records the result of another call of the same store, for Failed.
func (e *Exporter) Called(err error) { e.failed.Store(err != nil) }

// ExportSpans implements sdktrace.SpanExporter.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.Called(err)

	if err == nil {
		return nil
	}

	e.lost.Add(int64(len(spans)))

	now, last := time.Now().UnixNano(), e.told.Load()
	if time.Duration(now-last) > tellEvery && e.told.CompareAndSwap(last, now) {
		e.log.WarnContext(ctx, "spans could not be sent", "of", e.what, "spans", len(spans), "lost", e.lost.Load(), "error", err)
	}

	return nil // an error would be printed by the SDK, outside of the log
}

// ParseHeaders returns headers that are written as name=value, separated by commas.
func ParseHeaders(text string) (map[string]string, error) {
	set := map[string]string{}

	for entry := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(entry), "=")
		if found && name != "" {
			set[name] = value
		} else if entry != "" {
			return nil, errors.New("the headers must have the form name=value, separated by commas")
		}
	}

	return set, nil
}
