package webhook

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// sealed is what is encrypted of push notifications.
type sealed struct {
	Token       string `json:"token"`
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials"`
}

// box returns the cipher for the secrets of clients. Its key is derived from the secret of the service.
func (w *Webhooks) box() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, w.Secret, nil, "push notifications", sha256.Size)
	if err != nil {
		return nil, err
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts the secrets of push notifications. They can be opened only for the webhook with this id.
func (w *Webhooks) seal(id uuid.UUID, p Push) ([]byte, error) {
	box, err := w.box()
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(sealed{Token: p.Token, Scheme: p.Scheme, Credentials: p.Credentials})
	if err != nil {
		return nil, err
	}

	return box.Seal(nil, nil, text, id[:]), nil //nolint:gosec // the cipher makes the nonce
}

// open returns the push notifications of a webhook with their secrets. It fails if the service has another secret than when they were made.
func (w *Webhooks) open(k Webhook) (Push, error) {
	box, err := w.box()
	if err != nil {
		return Push{}, err
	}

	text, err := box.Open(nil, nil, k.sealed, k.ID[:])
	if err != nil {
		return Push{}, fmt.Errorf("the secret of the service has changed: %w", err)
	}

	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return Push{}, err
	}

	return Push{ID: k.pushID, URL: k.URL, Token: s.Token, Scheme: s.Scheme, Credentials: s.Credentials}, nil
}
