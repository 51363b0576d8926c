package connection

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Keys are the keys of the operator. New secrets are sealed with Current. Other opens secrets too, so that the key can be changed while the service runs.
type Keys struct{ Current, Other string }

// errKey means that a secret is sealed with a key that the service does not have.
var errKey = errors.New("the secret of the connection is sealed with another key")

const keyIDBytes = 8

// envelope is a sealed secret.
type envelope struct {
	keyID   string
	wrapped []byte // the key of text, sealed with the key of the operator
	text    []byte
}

// keyID returns a name for a key of the operator that does not reveal it.
func keyID(key string) (string, error) {
	id, err := hkdf.Key(sha256.New, []byte(key), nil, "connections: name of the key", keyIDBytes)

	return hex.EncodeToString(id), err
}

func box(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	return cipher.NewGCMWithRandomNonce(block)
}

// wrapper returns the cipher for the keys of secrets.
func wrapper(key string) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, []byte(key), nil, "connections: keys of secrets", sha256.Size)
	if err != nil {
		return nil, err
	}

	return box(derived)
}

// seal encrypts a secret. The ids are authenticated too, so that it cannot be moved to another connection.
func (k Keys) seal(account, id uuid.UUID, secret []byte) (envelope, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails

	inner, err := box(key)
	if err != nil {
		return envelope{}, err
	}

	made := envelope{text: inner.Seal(nil, nil, secret, owner(account, id))} //nolint:gosec // the cipher makes the nonce

	return made, k.wrap(&made, account, id, key)
}

// wrap seals the key of a secret with the current key of the operator.
func (k Keys) wrap(made *envelope, account, id uuid.UUID, key []byte) error {
	outer, err := wrapper(k.Current)
	if err != nil {
		return err
	}

	made.wrapped = outer.Seal(nil, nil, key, owner(account, id)) //nolint:gosec // the cipher makes the nonce
	made.keyID, err = keyID(k.Current)

	return err
}

func owner(account, id uuid.UUID) []byte { return append(account[:], id[:]...) }

// unwrap returns the key of a secret.
func (k Keys) unwrap(e envelope, account, id uuid.UUID) ([]byte, error) {
	for _, key := range []string{k.Current, k.Other} {
		if key == "" {
			continue
		}

		if named, err := keyID(key); err != nil || named != e.keyID {
			continue
		}

		outer, err := wrapper(key)
		if err != nil {
			return nil, err
		}

		return outer.Open(nil, nil, e.wrapped, owner(account, id))
	}

	return nil, errKey
}

// open decrypts a secret.
func (k Keys) open(e envelope, account, id uuid.UUID) ([]byte, error) {
	key, err := k.unwrap(e, account, id)
	if err != nil {
		return nil, err
	}

	inner, err := box(key)
	if err != nil {
		return nil, err
	}

	return inner.Open(nil, nil, e.text, owner(account, id))
}

// rewrap seals the key of a secret with the current key of the operator. The secret itself is not opened.
func (k Keys) rewrap(e envelope, account, id uuid.UUID) (envelope, error) {
	key, err := k.unwrap(e, account, id)
	if err != nil {
		return envelope{}, fmt.Errorf("connection %s: %w", id, err)
	}

	return e, k.wrap(&e, account, id, key)
}
