package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"quern.dev/quern/internal/signin"
)

// client is the client ID of the command line at issuers.
const client = "quern-cli"

// SignedIn is the state of the sign-in of the command line at this server.
type SignedIn struct {
	File     string
	Username string // empty if not signed in here
	Current  bool   // commands use this server without --server
	Problem  string // why the credentials were not changed
}

// SignIn signs the command line in as a user, unless a user is already signed in at this server. It does not change the
// entries of other servers. The server becomes the default server of commands only if there is no other default.
func (i *Issuer) SignIn(home, server, username string) (SignedIn, error) {
	told := SignedIn{File: signin.Path(home)}

	// Keep the fields that this version does not know.
	file, servers := map[string]json.RawMessage{}, map[string]json.RawMessage{}

	content, err := os.ReadFile(told.File)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = []byte(`{}`), nil
	}

	if err == nil {
		err = json.Unmarshal(content, &file)
	}

	if known := file["servers"]; err == nil && known != nil {
		err = json.Unmarshal(known, &servers)
	}

	if err != nil {
		told.Problem = fmt.Sprintf("%s cannot be read: %v", told.File, err)

		return told, nil
	}

	var current string

	_ = json.Unmarshal(file["current"], &current) // empty if there is no default server

	told.Username, told.Problem = i.username(servers[server], server)
	if told.Username != "" || told.Problem != "" {
		told.Current = current == server

		return told, nil
	}

	given := i.Grant(username, client)
	told.Username = username

	if current == "" {
		current = server
	}

	told.Current = current == server
	servers[server] = raw(signin.Entry{
		Issuer: i.URL, TokenEndpoint: i.TokenEndpoint(), ClientID: client, Access: given.Access, Refresh: given.Refresh,
		ExpiresAt: i.signer.now().Add(accessLife),
	})
	file["servers"], file["current"] = raw(servers), raw(current)

	return told, signin.Write(told.File, file)
}

// username returns who is signed in by an entry for this server, if this issuer can renew the sign-in.
func (i *Issuer) username(entry json.RawMessage, server string) (username, problem string) {
	if entry == nil {
		return "", ""
	}

	var kept signin.Entry
	if err := json.Unmarshal(entry, &kept); err != nil || kept.Issuer != i.URL {
		return "", fmt.Sprintf("%s already has a sign-in of another issuer, which `quern --server %[1]s logout` removes", server)
	}

	about, err := i.signer.verify(refreshToken, kept.Refresh)
	if err != nil {
		return "", "" // from an earlier folder
	}

	return about.Subject, ""
}

func raw(value any) json.RawMessage {
	content, _ := json.Marshal(value) //nolint:errchkjson // texts and times alone

	return content
}
