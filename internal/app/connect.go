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
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/tracing"
)

// httpClient reaches one outside system: with its own authorities, its own proxy, and never longer
// than its timeout. The proxy settings of the environment are not read, so that nothing takes a way
// that the operator did not write down.
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
			return nil, errors.New("the proxy is not an address")
		}

		transport.Proxy = http.ProxyURL(proxy)
	}

	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities: %w", err)
		}

		authorities := x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", c.CAFile)
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

// openStore prepares the object store.
func openStore(c config.S3) (*blob.Store, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("the connection to the object store: %w", err)
	}

	store, err := blob.New(blob.Config{
		Endpoint: string(c.Endpoint), PublicEndpoint: string(c.PublicEndpoint), Region: c.Region, Bucket: c.Bucket, Prefix: c.Prefix,
		AccessKey: c.AccessKey.Reveal(), SecretKey: c.SecretKey.Reveal(), PathStyle: c.PathStyle, Client: client, Now: time.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("the object store: %w", err)
	}

	return store, nil
}

// openTracing prepares the tracing store.
func openTracing(ctx context.Context, c config.Tracing, log *slog.Logger) (*tracing.Tracing, error) {
	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, fmt.Errorf("the connection to the tracing store: %w", err)
	}

	store, err := tracing.New(ctx, tracing.Config{
		Kind: tracing.Kind(c.Kind), Endpoint: string(c.Endpoint), Key: c.Key.Reveal(), Headers: c.Headers.Reveal(), Project: c.Project,
		Environment: c.Environment, Capture: c.Capture, Client: client, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("the tracing store: %w", err)
	}

	return store, nil
}

// openModels prepares the language models. None of them need answer yet.
func (a *App) openModels() (*llm.Models, error) {
	var providers []llm.Provider

	for _, p := range a.config.Model.Providers {
		client, err := httpClient(config.Connection{CAFile: p.CAFile, Proxy: p.Proxy, Timeout: p.Timeout})
		if err != nil {
			return nil, fmt.Errorf("the connection to the models of %s: %w", p.Name, err)
		}

		exposure := llm.ExposeRows
		if !p.Local {
			if exposure, err = llm.ParseExposure(p.Exposure); err != nil {
				return nil, fmt.Errorf("the models of %s: %w", p.Name, err)
			}
		}

		providers = append(providers, llm.Provider{
			Name: p.Name, Kind: llm.Kind(p.Kind), URL: string(p.URL), Key: p.Key.Reveal(), Local: p.Local, Exposure: exposure, Models: p.Models,
			Concurrency: p.Concurrency, Timeout: p.Timeout, Client: client,
		})
	}

	usage := a.catalog()

	models, err := llm.New(llm.Config{
		DB: a.db, Providers: providers, Capture: a.config.Tracing.Capture, Log: a.log, Now: time.Now,
		Settle: func(ctx context.Context, tx postgres.Tx, account uuid.UUID, tokens int64) error {
			return usage.CountTx(ctx, tx, account, usedTokens, tokens)
		},
		Admit: func(ctx context.Context, tx postgres.Tx, account uuid.UUID) error {
			return usage.LeftTx(ctx, tx, account, usedTokens)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the models: %w", err)
	}

	return models, nil
}

// usedTokens is what models are paid by, as the usage of an account has it.
const usedTokens = "tokens"

// directURL is the database past any pooler.
func directURL(c config.Database) string {
	if direct := c.DirectURL.Reveal(); direct != "" {
		return direct
	}

	return c.URL.Reveal()
}

// newLog returns the log that the configuration asks for.
func newLog(c config.Log, to io.Writer) *slog.Logger {
	var level slog.Level

	_ = level.UnmarshalText([]byte(c.Level)) // the configuration has checked it

	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(to, options))
	}

	return slog.New(slog.NewJSONHandler(to, options))
}
