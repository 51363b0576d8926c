package duckdb

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"quern.dev/quern/internal/engine"
)

// failure is a problem with the file or the options, described for the person who sent them.
type failure struct {
	code, message string
	doubt         *engine.Doubt // the option that may let it succeed; nil if there is none
	source        int           // the number of the file, from 1; 0 if it is not known
}

func (f *failure) Error() string { return f.message }

func invalid(format string, args ...any) error {
	return &failure{code: engine.InvalidFile, message: fmt.Sprintf(format, args...)}
}

// undecoded is invalid for a text in another encoding, with encodings that may be the right one.
func undecoded(suggestions []string, format string, args ...any) error {
	return &failure{
		code: engine.InvalidFile, message: fmt.Sprintf(format, args...),
		doubt: &engine.Doubt{Option: "encoding", Message: "The encoding of the file is not known.", Suggestions: suggestions},
	}
}

// bytewise are common encodings of texts that are not in UTF-8; wide are those of texts with NUL bytes.
func bytewise() []string { return []string{"windows-1252", "windows-1250", "shift_jis"} }
func wide() []string     { return []string{"utf-16le", "utf-16be"} }

const (
	headSize   = 64 << 10
	zstdWindow = 128 << 20 // limit for the memory that a zstd file can require
)

// unpack detects the format of a file from its content, and converts it to an uncompressed file in UTF-8.
func (p *program) unpack(source engine.Source) (plainFile, error) {
	tmp, bounds := p.tmp, p.bounds

	found, err := newPlain(filepath.Join(p.in, source.Name), source.Format, source.Size)
	if err != nil {
		return found, err
	}

	found.read = &p.read

	if found.format == engine.FormatRows {
		return found, found.checkBody()
	}

	if packed := compression(found.head); packed != "" {
		plain := filepath.Join(tmp, source.Name+".plain")
		if err := found.decompress(plain, packed, bounds.Unpacked); err != nil {
			return found, err
		}

		if compression(found.head) != "" {
			return found, invalid("The file is compressed twice. Send it compressed once or not at all.")
		}
	}

	if found.size == 0 {
		return found, invalid("The file is empty.")
	}

	if bytes.HasPrefix(found.head, []byte("PAR1")) {
		found.format = engine.FormatParquet

		return found, found.arrive()
	}

	if found.format == engine.FormatParquet {
		return found, invalid("The file is not Parquet.")
	}

	if done, err := p.fromDocument(&found, source.Name); done || err != nil {
		return found, err
	}

	if found.format == "" && found.isOffice() {
		return found, found.fromSheet(filepath.Join(tmp, source.Name+".sheet"), p.options, bounds)
	}

	if err := found.toUTF8(tmp, source.Name, p.options.Encoding, bounds.Unpacked); err != nil {
		return found, err
	}

	if err := found.recognize(); err != nil || source.Format != "" || found.format != engine.FormatText {
		return found, err
	}

	_, err = p.fromText(&found, source.Name)

	return found, err
}

func compression(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	default:
		return ""
	}
}

func (f *plainFile) decompress(to, how string, limit int64) error {
	file, err := f.open()
	if err != nil {
		return err
	}
	defer file.Close()

	var unpacked io.Reader

	if how == "gzip" {
		unpacked, err = gzip.NewReader(bufio.NewReaderSize(f.counted(file), 1<<20))
	} else {
		var decoder *zstd.Decoder
		if decoder, err = zstd.NewReader(f.counted(file), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow)); err == nil {
			defer decoder.Close()

			unpacked = decoder
		}
	}

	if err != nil {
		return invalid("The %s compression is broken: %v.", how, err)
	}

	if err := store(to, unpacked, limit, func(err error) error {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return invalid("The %s compression ends too early: the file is truncated.", how)
		}

		return invalid("The %s compression is broken: %v.", how, err)
	}); err != nil {
		return err
	}

	return f.become(to)
}

// store writes a stream to a file. broken converts an error of the stream to a failure.
func store(to string, from io.Reader, limit int64, broken func(error) error) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()

	stream := &tellingReader{from: io.LimitReader(from, limit+1)}

	written, err := io.Copy(file, stream)

	switch {
	case stream.err != nil:
		return broken(stream.err)
	case err != nil:
		return err
	case written > limit:
		return &failure{code: engine.LimitExceeded, message: fmt.Sprintf("The file has more than %d bytes when it is unpacked.", limit)}
	}

	return file.Close()
}

// tellingReader keeps the error of the reader separate from errors of the writer.
type tellingReader struct {
	from io.Reader
	err  error
}

func (t *tellingReader) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}

	return n, err
}

// checkBody checks rows in the body of a request, which must be JSON in UTF-8. A body is small enough to be read
// completely.
func (f *plainFile) checkBody() error {
	body, err := os.ReadFile(f.path)
	if err == nil && !utf8.Valid(body) {
		err = invalid("The body is not JSON in UTF-8.")
	}

	return err
}

// toUTF8 replaces the file with a copy in UTF-8 if the option or a byte order mark names another encoding.
func (f *plainFile) toUTF8(tmp, name, label string, limit int64) error {
	decoder, named, err := f.decoder(label)
	if err != nil || named == "utf-8" {
		return err
	}

	file, err := f.open()
	if err != nil {
		return err
	}
	defer file.Close()

	path := filepath.Join(tmp, name+".utf8")
	strict := &strictDecoder{Transformer: decoder, encoding: named}
	others := slices.DeleteFunc(append([]string{"utf-8"}, bytewise()...), func(one string) bool { return one == named })

	if err := store(path, transform.NewReader(bufio.NewReaderSize(f.counted(file), 1<<20), strict), limit, func(err error) error {
		if errors.Is(err, errUndecodable) {
			return undecoded(others, "Line %d is not in the encoding %s.", strict.seen.lines+1, cmp.Or(label, named))
		}

		return undecoded(others, "The file is not in the encoding %s: %v.", cmp.Or(label, named), err)
	}); err != nil {
		return err
	}

	return f.become(path)
}

// strictDecoder fails where its decoder would write U+FFFD for invalid bytes.
type strictDecoder struct {
	transform.Transformer

	encoding string
	seen     lineCounter
}

var errUndecodable = errors.New("bytes that are invalid in the encoding")

func (d *strictDecoder) Transform(dst, src []byte, last bool) (written, read int, err error) {
	written, read, err = d.Transformer.Transform(dst, src, last)
	made := dst[:written]

	given := 0
	if strings.HasPrefix(d.encoding, "utf-16") {
		given = replacements(src[:read])
	}

	if bytes.Count(made, []byte(replacement)) > given {
		made, _, _ = bytes.Cut(made, []byte(replacement))
		err = errUndecodable
	}

	_, _ = d.seen.Write(made)

	return len(made), read, err
}

const replacement = "\ufffd"

// replacements counts the U+FFFD that the UTF-16 input already contains, in either byte order.
func replacements(src []byte) (n int) {
	for i := 0; i+1 < len(src); i += 2 {
		if src[i] == 0xff && src[i+1] == 0xfd || src[i] == 0xfd && src[i+1] == 0xff {
			n++
		}
	}

	return n
}

// decoder returns the decoder that converts the file to UTF-8, and the name of the encoding.
func (f *plainFile) decoder(label string) (decoder *encoding.Decoder, name string, err error) {
	if label == "" {
		if bytes.HasPrefix(f.head, []byte{0xff, 0xfe}) || bytes.HasPrefix(f.head, []byte{0xfe, 0xff}) {
			return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder(), "utf-16", nil
		}

		return nil, "utf-8", nil
	}

	named, problem := engine.EncodingOf(label)
	if problem != "" {
		return nil, "", &failure{code: engine.InvalidOptions, message: "encoding: " + problem + "."}
	}

	name, err = htmlindex.Name(named)

	return named.NewDecoder(), name, err
}

// binaries maps the first bytes of files that are not text to a description for users.
func binaries() map[string]string {
	return map[string]string{
		"PK\x03\x04": "a zip archive or a workbook", "\xd0\xcf\x11\xe0": "an old Office document",
		"\x89PNG": "a picture", "\xff\xd8\xff": "a picture", "7z\xbc\xaf": "a 7z archive", "BZh": "compressed with bzip2", "\xfd7zXZ": "compressed with xz",
		"ORC": "an ORC file", "Obj\x01": "an Avro file", "SQLite format 3": "a SQLite database",
	}
}

// recognize distinguishes JSON from delimited text, and fails for binary files.
func (f *plainFile) recognize() error {
	for magic, what := range binaries() {
		if bytes.HasPrefix(f.head, []byte(magic)) && (len(magic) > 3 || !utf8.Valid(f.head)) {
			return invalid("The file is %s. Send CSV, TSV, XLSX, JSON, NDJSON, Parquet or a document (PDF, DOCX, HTML, Markdown, EML), each also with gzip or zstd.", what)
		}
	}

	if bytes.IndexByte(f.head, 0) >= 0 {
		return undecoded(wide(), "The file has NUL bytes: it is not CSV, TSV, XLSX, JSON, NDJSON or Parquet, or its encoding must be given with the option encoding.")
	}

	if f.format != "" {
		return nil
	}

	f.format = engine.FormatText
	if looksLikeJSON(f.text()) {
		f.format = engine.FormatJSON
	}

	return nil
}

// looksLikeJSON reports whether a text starts like JSON: an object starts with a key or ends immediately, and an array
// starts with a value or ends immediately. A CSV header in square brackets is not an array.
func looksLikeJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return false
	}

	rest := bytes.TrimLeft(head[1:], " \t\r\n")

	switch {
	case len(rest) == 0:
		return head[0] == '{' || head[0] == '['
	case head[0] == '{':
		return rest[0] == '"' || rest[0] == '}'
	case head[0] == '[':
		return strings.IndexByte("{[]\"-0123456789", rest[0]) >= 0 || bytes.HasPrefix(rest, []byte("true")) ||
			bytes.HasPrefix(rest, []byte("false")) || bytes.HasPrefix(rest, []byte("null"))
	default:
		return false
	}
}
