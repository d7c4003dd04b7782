package forgetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/textproto"
	"path"
	"strings"
)

// ReadDeliveries reads recorded deliveries of Gitea: NAME.json is the body,
// byte for byte, and NAME.headers its headers. They come in the order of their
// names, addressed to the hook they were recorded for.
func ReadDeliveries(fsys fs.FS) ([]Delivery, error) {
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, fmt.Errorf("list recorded deliveries: %w", err)
	}
	var out []Delivery
	for _, name := range names {
		d, err := readDelivery(fsys, strings.TrimSuffix(name, path.Ext(name)))
		if err != nil {
			return nil, fmt.Errorf("read the recorded delivery %s: %w", name, err)
		}
		out = append(out, d)
	}
	return out, nil
}

func readDelivery(fsys fs.FS, name string) (Delivery, error) {
	body, err := fs.ReadFile(fsys, name+".json")
	if err != nil {
		return Delivery{}, err
	}
	text, err := fs.ReadFile(fsys, name+".headers")
	if err != nil {
		return Delivery{}, err
	}
	// The reader wants the empty line that ends headers.
	text = append(bytes.TrimSpace(text), "\r\n\r\n"...)
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		return Delivery{}, err
	}
	var p struct {
		Action     string `json:"action"`
		Repository struct {
			ID    int64 `json:"id"`
			Owner struct {
				ID int64 `json:"id"`
			} `json:"owner"`
		} `json:"repository"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Delivery{}, err
	}
	d := Delivery{Name: name, Header: http.Header(header), Body: body,
		Path:  fmt.Sprintf("/webhook/gitea/repo/%d", p.Repository.ID),
		Event: header.Get("X-Gitea-Event") + " " + p.Action}
	if header.Get("X-Gitea-Hook-Installation-Target-Type") == "organization" {
		d.Path = fmt.Sprintf("/webhook/gitea/org/%d", p.Repository.Owner.ID)
	}
	return d, nil
}
