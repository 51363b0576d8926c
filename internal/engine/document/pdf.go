package document

import (
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	pdf "github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
)

const (
	maxPDF     = 96 << 20          // bytes of the file, which is also in the memory of PDFium
	wasmPages  = 384 << 20 / 65536 // memory of PDFium
	startTime  = time.Minute
	unreadable = 5 // a page of which more than one in so many letters has no meaning cannot be read
)

// pdfium is PDFium as WebAssembly: without files, network and clock, and without an engine for scripts.
type pdfium struct{ pool pdf.Pool }

// instance returns a new instance. The first one takes some seconds, in which PDFium is compiled.
func (p *pdfium) instance() (pdf.Pdfium, error) {
	if p.pool == nil {
		pool, err := webassembly.Init(webassembly.Config{
			MaxIdle: 1, MaxTotal: 1, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
			RuntimeConfig: wazero.NewRuntimeConfig().WithMemoryLimitPages(wasmPages),
		})
		if err != nil {
			return nil, err
		}

		p.pool = pool
	}

	return p.pool.GetInstance(startTime)
}

func (r *reading) readPDF(data []byte) error {
	if len(data) > maxPDF {
		return exceeded("The PDF document has more than %d bytes.", maxPDF)
	}

	instance, err := r.pdf.instance()
	if err != nil {
		return err
	}

	defer func() {
		_ = instance.Close()

		runtime.GC() // the next document needs the memory
	}()

	opened, err := instance.OpenDocument(&requests.OpenDocument{File: &data})

	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword), errors.Is(err, pdfiumerrors.ErrSecurity):
		return invalid("The PDF document is encrypted. Save it without a password.")
	case err != nil:
		return invalid("The PDF document is broken: it cannot be opened.")
	}

	count, err := instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})

	switch {
	case err != nil || count.PageCount < 1:
		return invalid("The PDF document is broken: it has no pages.")
	case count.PageCount > maxPages:
		return exceeded("The PDF document has %d pages; %d are allowed.", count.PageCount, maxPages)
	}

	for n := range count.PageCount {
		if err := r.readPage(instance, opened.Document, n); err != nil {
			return err
		}

		r.read(int64(3 * len(data) / count.PageCount))
	}

	return nil
}

// readPage reads a page. A page without text is empty only if nothing is drawn on it.
func (r *reading) readPage(instance pdf.Pdfium, of references.FPDF_DOCUMENT, index int) error {
	page := requests.Page{ByIndex: &requests.PageByIndex{Document: of, Index: index}}
	number := len(r.Pages) + 1

	found, err := instance.GetPageTextStructured(&requests.GetPageTextStructured{Page: page, Mode: requests.GetPageTextStructuredModeChars})
	if err != nil {
		return invalid("Page %d of the PDF document is broken: its text cannot be read.", number)
	}

	runs, turned, strange := runsOf(found.Chars)

	switch letters := len(found.Chars); {
	case len(runs) == 0 && turned == "" && strange == 0:
		drawn, err := instance.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: page})
		if err != nil || drawn.Count > 0 {
			return invalid("Page %d of the PDF document has no text, only pictures. Add the text with a program that recognises text (OCR), or remove the page.", number)
		}
	case strange*unreadable > letters:
		return invalid("Page %d of the PDF document cannot be read: its fonts do not say which letters they show. Add the text with a program that recognises text (OCR).", number)
	}

	made := &composer{}
	em := emOf(runs)
	r.layOut(made, linesOf(runs, em), em)
	made.add(Paragraph, turned)

	return r.add(made)
}

// runsOf joins the letters of a page to runs of one line. It also returns the text that is turned, and how many letters have no meaning.
func runsOf(chars []*responses.GetPageTextStructuredChar) (runs []run, turned string, strange int) {
	var (
		now       *run
		blank     bool
		away      strings.Builder
		em        = emOfChars(chars)
		isStrange = func(r rune) bool { return r == unicode.ReplacementChar || unicode.Is(unicode.Co, r) }
	)

	for _, c := range chars {
		switch letters := clean(c.Text); {
		case c.Text == "" || strings.ContainsFunc(c.Text, isStrange):
			strange++
		case strings.TrimSpace(letters) == "":
			blank = true

			if isTurned(c) {
				away.WriteString(" ")
			}
		case isTurned(c):
			away.WriteString(letters)
		default:
			at := run{c.PointPosition.Left, c.PointPosition.Right, c.PointPosition.Bottom, c.PointPosition.Top, letters}

			if now == nil || !now.continues(at, em) {
				runs = append(runs, at)
				now = &runs[len(runs)-1]
			} else {
				if blank {
					now.text += " "
				}

				now.text += letters
				now.right, now.bottom, now.top = max(now.right, at.right), min(now.bottom, at.bottom), max(now.top, at.top)
			}

			blank = false
		}
	}

	return runs, away.String(), strange
}

// continues reports whether a letter is next to the run, in the same line.
func (r *run) continues(c run, em float64) bool {
	gap := c.left - r.right

	return c.bottom > r.bottom-em/2 && c.top < r.top+em/2 && overlap(r.bottom-em/4, r.top+em/4, c.bottom, c.top) > 0 && gap < em && gap > -em/2
}

func isTurned(c *responses.GetPageTextStructuredChar) bool {
	return math.Abs(math.Sin(c.Angle)) > 0.05 || math.Cos(c.Angle) < 0
}

// capital is the height of capital letters and digits, as part of the size of a font.
const capital = 0.72

func emOfChars(chars []*responses.GetPageTextStructuredChar) float64 {
	var heights []float64

	for _, c := range chars {
		if !isTurned(c) && strings.TrimSpace(c.Text) != "" {
			heights = append(heights, c.PointPosition.Top-c.PointPosition.Bottom)
		}
	}

	return tall(heights)
}

func emOf(runs []run) float64 {
	var heights []float64
	for _, r := range runs {
		heights = append(heights, r.top-r.bottom)
	}

	return tall(heights)
}

// tall returns the size of a font of which most letters are not higher than a capital letter.
func tall(heights []float64) float64 {
	if len(heights) == 0 {
		return 1
	}

	slices.Sort(heights)

	return max(heights[len(heights)*3/4]/capital, 1)
}
