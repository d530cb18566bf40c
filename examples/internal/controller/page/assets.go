// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
)

//go:embed assets
var assets embed.FS

// files are those of the page.
func files() []string { return []string{"index.html", "page.css", "page.js"} }

// build tells these files from those of another version.
func build() string {
	sum := sha256.New()
	for _, name := range files() {
		raw, _ := assets.ReadFile("assets/" + name) // one that is not there is refused when it is asked for
		sum.Write(raw)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

func serveAsset(w http.ResponseWriter, r *http.Request, name, kind string) {
	raw, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, "the page is not complete", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	write(w, r, raw)
}
