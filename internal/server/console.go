package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/build"
)

// Console configures the web pages.
type Console struct {
	Files    fs.FS  // index.html, and under assets/ files whose names change with their content
	ClientID string // at the issuer
	Scope    string
	Store    string // origin of the addresses that the object store signs
	Model    bool   // a language model is configured
}

const (
	indexName   = "index.html"
	assetPrefix = "assets/"
)

// console serves the web pages: every address that is not of the API shows index.html, whose script then reads the address.
type console struct {
	files    map[string]file
	policy   string
	settings consoleSettings
}

// file is a file of the console.
type file struct {
	media   string
	content []byte
	tag     string
	gzipped []byte // nil if there is no compressed form beside it
}

// consoleSettings is what the script must know before anybody has signed in. It has no secrets, because anyone may read it.
type consoleSettings struct {
	Issuer      string `json:"issuer"`
	ClientID    string `json:"clientId"`
	Scope       string `json:"scope"`
	StoreOrigin string `json:"storeOrigin"`
	Version     string `json:"version"`
	Model       bool   `json:"model"`
	APIBase     string `json:"apiBase"`
	MCPURL      string `json:"mcpUrl"`
	A2AURL      string `json:"a2aUrl"`
}

func newConsole(s *Server) (*console, error) {
	given := s.config.Console

	files, err := readFiles(given.Files)
	if err != nil {
		return nil, fmt.Errorf("reading the console: %w", err)
	}

	issuer, err := url.Parse(s.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the address of the issuer: %w", err)
	}

	reached := slices.Compact([]string{"'self'", issuer.Scheme + "://" + issuer.Host, given.Store})

	return &console{
		files: files,
		policy: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src " + strings.Join(reached, " ") +
			"; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		settings: consoleSettings{
			Issuer: s.config.Issuer, ClientID: given.ClientID, Scope: given.Scope, StoreOrigin: given.Store, Version: build.Read().Version, Model: given.Model,
			APIBase: basePath, MCPURL: s.config.PublicURL + toolsPath, A2AURL: s.config.PublicURL + agentsPath,
		},
	}, nil
}

// readFiles reads all files, each with its compressed form. Hidden files are for the build, so they are left out.
func readFiles(from fs.FS) (map[string]file, error) {
	files := map[string]file{}

	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."

		switch {
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || path.Ext(name) == ".gz":
			return nil
		}

		one := file{media: mediaOf(name)}
		if one.content, err = fs.ReadFile(from, name); err != nil {
			return err
		}

		sum := sha256.Sum256(one.content)
		one.tag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
		one.gzipped, _ = fs.ReadFile(from, name+".gz") // most files have none
		files[name] = one

		return nil
	})
	if err == nil && files[indexName].content == nil {
		err = fmt.Errorf("%s is missing", indexName)
	}

	return files, err
}

// mediaOf returns the media type of a file. Unlike that of package mime, its table is the same on every machine.
func mediaOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".wasm":
		return "application/wasm"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}

// serve responds if the address is one of the console, and reports whether it did. An address that has no file is one of the console
// only for a browser: a program that mistyped an address of the API must get an error that it can read.
func (c *console) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}

	name := strings.TrimPrefix(r.URL.Path, "/")
	found, exists := c.files[name]

	switch {
	case exists && strings.HasPrefix(name, assetPrefix):
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	case exists:
		w.Header().Set("Cache-Control", "no-cache")
	case strings.HasPrefix(name, assetPrefix) || ofAPI(r.URL.Path) || !wantsPage(r):
		return false
	default:
		found = c.files[indexName]
		w.Header().Set("Cache-Control", "no-cache")
	}

	callOf(r.Context()).operation = "console"

	w.Header().Set("Content-Security-Policy", c.policy)
	found.send(w, r)

	return true
}

// ofAPI reports whether an address belongs to programs, whatever it names.
func ofAPI(address string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean("/"+address), "/"), "/")

	return slices.Contains([]string{"api", ".well-known", "healthz", "readyz", "console.json"}, first)
}

// wantsPage reports whether a request is that of a browser that opens a page. At the root anyone gets the page who does not refuse it.
func wantsPage(r *http.Request) bool {
	accept := r.Header.Values("Accept")

	return quality(accept, "text/html") > 0 && (r.URL.Path == "/" || strings.Contains(strings.ToLower(strings.Join(accept, ",")), "text/html"))
}

func (f file) send(w http.ResponseWriter, r *http.Request) {
	header, content, tag := w.Header(), f.content, f.tag

	if f.gzipped != nil {
		header.Add("Vary", "Accept-Encoding")

		if acceptsGzip(r) {
			header.Set("Content-Encoding", "gzip")
			// ServeContent leaves the length of encoded content to the caller, and ranges would be those of the encoded content.
			header.Set("Content-Length", strconv.Itoa(len(f.gzipped)))
			r.Header.Del("Range")

			content, tag = f.gzipped, strings.TrimSuffix(f.tag, `"`)+`-gzip"`
		}
	}

	header.Set("Content-Type", f.media)
	header.Set("ETag", tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// acceptsGzip reports whether the client accepts gzip (RFC 9110, 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}

		value, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		q, err := strconv.ParseFloat(value, 64)

		return !given || err == nil && q > 0
	}

	return false
}

func (c *console) config(w http.ResponseWriter, r *http.Request) {
	callOf(r.Context()).operation = "console"

	w.Header().Set("Cache-Control", "no-cache")
	writeJSON(w, http.StatusOK, c.settings)
}
