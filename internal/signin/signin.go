// Package signin is the file by which the command line is signed in. `quern login` writes it, and `quernd dev`, which signs its own
// user in.
package signin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Entry is what one server accepts, and how to renew it.
type Entry struct {
	Issuer        string    `json:"issuer"`
	TokenEndpoint string    `json:"tokenEndpoint"`
	ClientID      string    `json:"clientId"`
	Access        string    `json:"accessToken"`
	Refresh       string    `json:"refreshToken,omitempty"`
	ExpiresAt     time.Time `json:"expiresAt"`
}

// Home is the folder of the command line.
func Home(getenv func(string) string) (string, error) {
	if home := getenv("QUERN_HOME"); home != "" {
		return home, nil
	}

	folder, err := os.UserConfigDir()

	return filepath.Join(folder, "quern"), err
}

// Path is where the file lies in it.
func Path(home string) string { return filepath.Join(home, "credentials.json") }

// Write replaces a file as a whole, so that no reader and no crash sees half of it. It is for its owner alone.
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
