package dev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"quern.dev/quern/internal/signin"
)

// client is what the command line is called at issuers.
const client = "quern-cli"

// SignedIn is how the command line stands with this server.
type SignedIn struct {
	File     string
	Username string // empty if it is not signed in here
	Current  bool   // commands speak to this server without being told
	Problem  string // why it was left alone
}

// SignIn signs the command line in as a user, unless somebody is signed in at this server already. It touches no other server's
// entry, and becomes the server of commands that name none only where no other is.
func (i *Issuer) SignIn(home, server, username string) (SignedIn, error) {
	told := SignedIn{File: signin.Path(home)}

	// What we do not know in it stays as it is.
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

	_ = json.Unmarshal(file["current"], &current) // without one it stays empty

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

// username is who is signed in by an entry for our server, if it is one that we can renew.
func (i *Issuer) username(entry json.RawMessage, server string) (username, problem string) {
	if entry == nil {
		return "", ""
	}

	var kept signin.Entry
	if err := json.Unmarshal(entry, &kept); err != nil || kept.Issuer != i.URL {
		return "", fmt.Sprintf("there is a sign-in of another issuer at %s: `quern --server %[1]s logout` removes it", server)
	}

	about, err := i.signer.verify(refreshToken, kept.Refresh)
	if err != nil {
		return "", "" // of an earlier folder
	}

	return about.Subject, ""
}

func raw(value any) json.RawMessage {
	content, _ := json.Marshal(value) //nolint:errchkjson // texts and times alone

	return content
}
