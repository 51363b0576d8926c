package connection

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

// Validator is what a server said about a content, so that it can say later that it is still the same.
type Validator struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

// Fetched is what a server has at an address.
type Fetched struct {
	Same      bool // the content of the given validator; the other fields are empty
	Size      int64
	SHA256    string
	Validator Validator
}

// NoBytes is the SHA-256 of a content without any bytes.
const NoBytes = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// UnfitError means that an answer is not the file that is meant. Reason says what it is, after "the server".
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return "the server " + e.Reason }

// Fetch writes the content of a file to a place that it empties first, unless it is still that of the validator. It writes at most one byte more than most.
//
// Faults: NotFound; UnfitError if the content is another one than the name says, or ends too early twice. Other errors are for FailedHTTPS, except those of the place.
func (w *Web) Fetch(ctx context.Context, file string, known Validator, most int64, place Place) (found Fetched, err error) {
	for range 2 { // a server may have been stopped in the middle of an answer
		if found, err = w.fetch(ctx, file, known, most, place); !errors.Is(err, io.ErrUnexpectedEOF) {
			return found, err
		}
	}

	return Fetched{}, &UnfitError{"ended the file before its end"}
}

// Place receives the content of a file.
type Place interface {
	io.Writer
	Empty() error
}

func (w *Web) fetch(ctx context.Context, file string, known Validator, most int64, place Place) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, w.connection.Extract.Duration)
	defer cancel()

	answer, err := w.get(ctx, file, known)
	if err != nil {
		return Fetched{}, err
	}

	defer func() { _ = answer.Body.Close() }()

	if answer.StatusCode == http.StatusNotModified {
		return Fetched{Same: true}, nil
	}

	content := bufio.NewReader(io.LimitReader(answer.Body, most+1))

	head, err := content.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Fetched{}, err
	}

	if reason := unfit(FileName(file), answer.Header, head); reason != "" {
		return Fetched{}, &UnfitError{reason}
	}

	if err := place.Empty(); err != nil {
		return Fetched{}, err
	}

	hash := sha256.New()

	size, err := io.Copy(io.MultiWriter(place, hash), content)
	if err != nil {
		return Fetched{}, err
	}

	return Fetched{Size: size, SHA256: hex.EncodeToString(hash.Sum(nil)), Validator: validatorOf(answer.Header)}, nil
}

// Head returns NotFound for a file that is gone.
func (w *Web) Head(ctx context.Context, file string) (blob.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, w.connection.Extract.Duration)
	defer cancel()

	answer, err := w.get(ctx, file, Validator{})
	if err != nil {
		return blob.Object{}, err
	}

	_ = answer.Body.Close()

	return blob.Object{Key: file}, nil
}

// get asks for a file. An answer is the content, or 304 if there is a validator.
func (w *Web) get(ctx context.Context, file string, known Validator) (*http.Response, error) {
	address, err := w.address(file)
	if err != nil {
		return nil, err
	}

	answer, err := w.ask(ctx, address, known)
	if err != nil {
		return nil, err
	}

	switch status := answer.StatusCode; {
	case status == http.StatusOK, status == http.StatusNotModified && known != (Validator{}):
		return answer, nil
	case status == http.StatusNotFound, status == http.StatusGone:
		err = fault.Absent()
	default:
		err = &blob.RefusalError{Operation: "GET", Status: status}
	}

	_ = answer.Body.Close()

	return nil, err
}

func (w *Web) ask(ctx context.Context, address string, known Validator) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}

	request.Header.Set("User-Agent", "quern")
	request.Header.Set("Accept-Encoding", "identity") // the bytes of the file, and not those of one transfer

	for name, value := range map[string]string{"Authorization": w.credentials, "If-None-Match": known.ETag, "If-Modified-Since": known.Modified} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}

	return w.client.Do(request)
}

// etags matches what RFC 9110 permits in ASCII.
var etags = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7e]{0,500}"$`)

// settledFor is how long a file must have been unchanged for its time to identify its content: the time has whole seconds, and clocks differ.
const settledFor = time.Minute

func validatorOf(header http.Header) (v Validator) {
	if tag := header.Get("ETag"); etags.MatchString(tag) {
		v.ETag = tag
	}

	modified, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil {
		return v
	}

	if sent, err := http.ParseTime(header.Get("Date")); err == nil && sent.Sub(modified) >= settledFor {
		v.Modified = header.Get("Last-Modified")
	}

	return v
}

const sniffed = 1024 // bytes at the beginning of a content that show what it is

// unfit returns what is wrong with an answer whose file has this name: servers send pages for people, or errors as JSON, also with status 200.
func unfit(name string, header http.Header, head []byte) string {
	kind := strings.ToLower(path.Ext(name))
	isPacked := kind == ".gz" || kind == ".zst"

	switch encoding := strings.ToLower(header.Get("Content-Encoding")); {
	case encoding == "", encoding == "identity":
	case kind == ".gz" && (encoding == "gzip" || encoding == "x-gzip"), kind == ".zst" && encoding == "zstd": // the file itself is packed
	default:
		return "sent the file compressed, although it was asked not to"
	}

	if isPacked {
		kind = strings.ToLower(path.Ext(strings.TrimSuffix(strings.ToLower(name), kind)))
	}

	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"))
	isMarkup := bytes.HasPrefix(text, []byte("<"))
	isPage := isMarkup && (media == "text/html" || media == "application/xhtml+xml" || bytes.Contains(text, []byte("<html")) || bytes.Contains(text, []byte("<!doctype html")))
	isJSON := (media == "application/json" || media == "application/problem+json") && (bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")))

	switch {
	case isPage && !slices.Contains([]string{".html", ".htm", ".xhtml"}, kind):
		return "sent a page for people instead of the file"
	case isJSON && slices.Contains([]string{".csv", ".tsv", ".txt", ".parquet", ".xlsx"}, kind):
		return "sent JSON instead of the file"
	case kind == ".parquet" && !isPacked && len(head) > 0 && !bytes.HasPrefix(head, []byte("PAR1")):
		return "sent something else than a Parquet file"
	default:
		return ""
	}
}
