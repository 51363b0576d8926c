package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"quern.dev/quern/internal/signin"
)

// credentials is the file that `quern login` writes. Only its owner can read it.
type credentials struct {
	Current string            `json:"current"` // server of the last login
	Servers map[string]signIn `json:"servers"`
}

// signIn is the sign-in at one server.
type signIn struct{ signin.Entry }

func (p *program) credentialsPath() string { return signin.Path(p.home) }

func (p *program) readCredentials() (credentials, error) {
	kept := credentials{Servers: map[string]signIn{}}

	content, err := os.ReadFile(p.credentialsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}

	if err == nil {
		err = json.Unmarshal(content, &kept)
	}

	if err != nil {
		return kept, exitError{exitSignIn, fmt.Sprintf("the credentials cannot be read: %v", err), "Sign in again with `quern login`, or remove the file."}
	}

	return kept, nil
}

func (p *program) changeCredentials(change func(*credentials)) error {
	kept, err := p.readCredentials()
	if err != nil {
		kept = credentials{Servers: map[string]signIn{}}
	}

	change(&kept)

	return signin.Write(p.credentialsPath(), kept)
}

// serverAddress returns the address of a server in the form that is used as a key.
func serverAddress(text string) string {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "/"), "/api/v1")
	if text != "" && !strings.Contains(text, "://") {
		text = "https://" + text
	}

	return text
}

// tokens sets p.server and returns the function that provides the token for it.
func (p *program) tokens() (func(context.Context) (string, error), error) {
	if p.server == "" {
		p.server = os.Getenv("QUERN_SERVER")
	}

	kept, err := p.readCredentials()
	if p.server = serverAddress(p.server); p.server == "" {
		p.server = kept.Current
	}

	if p.server == "" {
		return nil, exitError{exitSignIn, "no server is configured", "Sign in with `quern login https://your.server`, or set QUERN_SERVER and QUERN_TOKEN."}
	}

	token := p.token
	if token == "" {
		token = os.Getenv("QUERN_TOKEN")
	}

	if token != "" {
		return func(context.Context) (string, error) { return strings.TrimSpace(token), nil }, nil
	}

	if err != nil {
		return nil, err
	}

	if _, signedIn := kept.Servers[p.server]; !signedIn {
		return nil, exitError{exitSignIn, "you are not signed in at " + p.server, fmt.Sprintf("Sign in with `quern login %s`, or set QUERN_TOKEN.", p.server)}
	}

	return p.renewed, nil
}

// renewed returns an access token that is valid for at least a few seconds. It renews the token when it is about to
// expire.
func (p *program) renewed(ctx context.Context) (string, error) {
	kept, err := p.readCredentials()
	if err != nil {
		return "", err
	}

	used := kept.Servers[p.server]
	if time.Until(used.ExpiresAt) > 20*time.Second {
		return used.Access, nil
	}

	fresh, err := used.renew(ctx)
	if err != nil {
		// Another quern process may have renewed it at the same time, which makes the old refresh token invalid.
		if kept, readErr := p.readCredentials(); readErr == nil && kept.Servers[p.server].Access != used.Access {
			return kept.Servers[p.server].Access, nil
		}

		return "", err
	}

	return fresh.Access, p.changeCredentials(func(kept *credentials) { kept.Servers[p.server] = fresh })
}
