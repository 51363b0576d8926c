package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"

	"quern.dev/quern/bench/rig"
	"quern.dev/quern/internal/engine/document/paper"
)

const pageRows = 40 // rows of the table on each page

// Documents measures how many pages of a PDF document are loaded in a second, beside go-pdfium alone, which only reads the letters of the same
// file with their places. Both compile PDFium in each round, as every sealed process does.
func Documents(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	content := priceList(b.Pages)

	files, err := s.Upload(ctx, rig.OfFile(bytes.NewReader(content)), int64(len(content)))
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "documents: %d pages, %d bytes\n", b.Pages, len(content))

	var memory rig.Footprint

	ours, bare, err := rig.Alternate(ctx, b.Loads,
		rig.WithProcessorTime(s.PID, rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			took, still, phases, err := TimedLoad(ctx, data, files, b.Pages*pageRows, &memory)

			return float64(took), fmt.Sprintf("%v, %v without progress%s", took, still, phases), err
		}}),
		rig.WithProcessorTime(os.Getpid(), rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			took, err := bareRead(ctx, b, s.Location, files.Key)

			return float64(took), took.String(), err
		}}))
	if err != nil {
		return nil, err
	}

	speed := func(took float64) string {
		return fmt.Sprintf("%.0f pages/s", float64(b.Pages)/time.Duration(took).Seconds())
	}

	return []rig.Result{{Name: "documents", Ours: speed(ours), Bare: speed(bare), Ratio: bare / ours}}, nil
}

// priceList returns a PDF document with a table on each page.
func priceList(pages int) []byte {
	all := make([][]paper.Print, pages)

	for n := range all {
		rows := [][]string{{"Item", "Unit", "Price"}}
		for i := range pageRows {
			rows = append(rows, []string{fmt.Sprintf("Bolt number %d with a flat head", n*pageRows+i), "box", fmt.Sprintf("%d.%02d", 1+i, n%100)})
		}

		all[n], _ = paper.Table(800, 15, []float64{50, 300, 450}, rows)
	}

	return paper.PDF(all...)
}

// bareRead fetches the file, and reads the letters of all its pages.
func bareRead(ctx context.Context, b *rig.Bench, p *rig.Location, key string) (took time.Duration, err error) {
	begin := time.Now()
	path := filepath.Join(b.Dir, "bare.pdf")

	if err := p.Fetch(ctx, key, path); err != nil {
		return 0, err
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}

	pool, err := webassembly.Init(webassembly.Config{
		MaxIdle: 1, MaxTotal: 1, FSConfig: wazero.NewFSConfig(), RuntimeConfig: wazero.NewRuntimeConfig(), Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, pool.Close()) }()

	instance, err := pool.GetInstance(time.Minute)
	if err != nil {
		return 0, err
	}

	opened, err := instance.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return 0, err
	}

	for n := range b.Pages {
		if _, err := instance.GetPageTextStructured(&requests.GetPageTextStructured{
			Page: requests.Page{ByIndex: &requests.PageByIndex{Document: opened.Document, Index: n}}, Mode: requests.GetPageTextStructuredModeChars,
		}); err != nil {
			return 0, err
		}
	}

	return time.Since(begin), nil
}
