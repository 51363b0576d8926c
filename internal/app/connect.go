package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/build"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/span"
	"quern.dev/quern/internal/tracing"
)

// httpClient returns a client for one outside system, with its own certificate authorities, proxy and timeout. Its
// errors begin with the name of the setting without the prefix. The client ignores the proxy settings of the
// environment, so that it uses only routes that the operator configured.
func httpClient(c config.Connection) (*http.Client, error) {
	transport := &http.Transport{
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     idleTimeout,
		TLSHandshakeTimeout: c.Timeout,
	}

	if c.Proxy != "" {
		proxy, err := url.Parse(string(c.Proxy))
		if err != nil {
			return nil, errors.New("PROXY is not an address")
		}

		transport.Proxy = http.ProxyURL(proxy)
	}

	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA_FILE cannot be read: %w", err)
		}

		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA_FILE: %s contains no certificate", c.CAFile)
		}

		transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	}

	return &http.Client{Transport: transport, Timeout: c.Timeout}, nil
}

func openDatabase(ctx context.Context, c config.Database) (*postgres.DB, error) {
	return postgres.Open(ctx, postgres.Config{
		URL: c.URL.Reveal(), Pooler: c.Pooler, MaxConns: c.MaxConns,
		AcquireTimeout: c.AcquireTimeout, QueryTimeout: c.QueryTimeout, LockTimeout: c.LockTimeout,
	})
}

// openStore prepares the object store. observe may wrap the transport of its requests. The store calls mayRemove before every removal;
// nil allows every removal.
func openStore(c config.S3, observe func(http.RoundTripper) http.RoundTripper, mayRemove func(context.Context) error) (*blob.Store, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("QUERN_S3_%w", err)
	}

	if observe != nil {
		client.Transport = observe(client.Transport)
	}

	store, err := blob.New(blob.Config{
		Endpoint: string(c.Endpoint), PublicEndpoint: string(c.PublicEndpoint), Region: c.Region, Bucket: c.Bucket, Prefix: c.Prefix,
		AccessKey: c.AccessKey.Reveal(), SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle, Client: client, Now: time.Now,
		MayRemove: mayRemove,
	})
	if err != nil {
		return nil, fmt.Errorf("QUERN_S3_ENDPOINT, QUERN_S3_PUBLIC_ENDPOINT or QUERN_S3_PATH_STYLE: %w", err)
	}

	return store, nil
}

// openTracing prepares the tracing store.
func openTracing(ctx context.Context, c config.Tracing, log *slog.Logger) (*tracing.Tracing, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("QUERN_TRACING_%w", err)
	}

	store, err := tracing.New(ctx, tracing.Config{
		Kind: tracing.Kind(c.Kind), Endpoint: string(c.Endpoint), Key: c.Key.Reveal(), Headers: c.Headers.Reveal(), Project: c.Project,
		Environment: c.Environment, Capture: c.Capture, Client: client, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("QUERN_TRACING_ENDPOINT, QUERN_TRACING_KEY or QUERN_TRACING_HEADERS: %w", err)
	}

	return store, nil
}

// openSpans prepares the traces of requests and jobs.
func openSpans(ctx context.Context, c config.Spans, log *slog.Logger) (*span.Spans, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("QUERN_SPANS_%w", err)
	}

	spans, err := span.New(ctx, span.Config{
		Endpoint: string(c.Endpoint), Headers: c.Headers.Reveal(), Share: c.Share, Environment: c.Environment, Version: build.Read().Version,
		Client: client, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("QUERN_SPANS_ENDPOINT or QUERN_SPANS_HEADERS: %w", err)
	}

	return spans, nil
}

// openModels prepares the language models. No model needs to be reachable yet.
func (a *App) openModels() (*llm.Models, error) {
	var providers []llm.Provider

	for _, p := range a.config.Model.Providers {
		client, err := httpClient(config.Connection{CAFile: p.CAFile, Proxy: p.Proxy, Timeout: p.Timeout})
		if err != nil {
			return nil, fmt.Errorf("%s%w", config.ProviderPrefix(p.Name), err)
		}

		client.Transport = span.Transport(client.Transport, "model")

		exposure := llm.ExposeRows
		if !p.Local {
			if exposure, err = llm.ParseExposure(p.Exposure); err != nil {
				return nil, fmt.Errorf("%sEXPOSURE: %w", config.ProviderPrefix(p.Name), err)
			}
		}

		providers = append(providers, llm.Provider{
			Name: p.Name, Kind: llm.Kind(p.Kind), URL: string(p.URL), Key: p.Key.Reveal(), Local: p.Local, Exposure: exposure, Models: p.Models,
			Concurrency: p.Concurrency, Timeout: p.Timeout, Client: client,
		})
	}

	usage := a.catalog()

	models, err := llm.New(llm.Config{
		DB: a.db, Providers: providers, Capture: a.config.Tracing.Capture, Log: a.log, Now: time.Now, Observe: a.observed.model,
		Settle: func(ctx context.Context, tx postgres.Tx, account uuid.UUID, tokens int64) error {
			return usage.Count(ctx, tx, account, catalog.Tokens, tokens)
		},
		Admit: func(ctx context.Context, tx postgres.Tx, account uuid.UUID) error {
			return usage.Left(ctx, tx, account, catalog.Tokens)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("QUERN_MODELS: %w", err)
	}

	return models, nil
}

// directURL returns the address of the database that bypasses any pooler.
func directURL(c config.Database) string {
	if direct := c.DirectURL.Reveal(); direct != "" {
		return direct
	}

	return c.URL.Reveal()
}

// newLog returns the logger that the configuration describes.
func newLog(c config.Log, to io.Writer) *slog.Logger {
	var level slog.Level

	_ = level.UnmarshalText([]byte(c.Level)) // the configuration has checked the value

	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(span.Handler(slog.NewTextHandler(to, options)))
	}

	return slog.New(span.Handler(slog.NewJSONHandler(to, options)))
}
