// Package signin defines and writes the file with the credentials of the command line. `quern login` writes it, and
// so does `quernd dev`, which signs in its own user.
package signin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Entry contains the tokens for one server, and what is needed to renew them.
type Entry struct {
	Issuer        string    `json:"issuer"`
	TokenEndpoint string    `json:"tokenEndpoint"`
	ClientID      string    `json:"clientId"`
	Access        string    `json:"accessToken"`
	Refresh       string    `json:"refreshToken,omitempty"`
	ExpiresAt     time.Time `json:"expiresAt"`
}

// Home returns the folder of the command line.
func Home(getenv func(string) string) (string, error) {
	if home := getenv("QUERN_HOME"); home != "" {
		return home, nil
	}

	folder, err := os.UserConfigDir()

	return filepath.Join(folder, "quern"), err
}

// Path returns the path of the credentials file in that folder.
func Path(home string) string { return filepath.Join(home, "credentials.json") }

// Write replaces a file as a whole, so that readers never see a partial file, even if the process ends unexpectedly.
// Only the owner can read the file.
func Write(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}

	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // its mode is 0600
	if err != nil {
		return err
	}

	_, err = file.Write(append(content, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}

	if err != nil {
		_ = os.Remove(file.Name())
	}

	return err
}
