// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodetier

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// descriptor refers to a blob of an image, after the OCI image specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive is an image layout under construction: a tar with one file for each blob, named by its digest.
type archive struct {
	buffer bytes.Buffer
	tar    *tar.Writer
}

// WriteImage writes an OCI image archive to path: one layer that holds the one static program.
func WriteImage(path, name, program string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the image's program: %w", err)
	}
	image, err := buildImage(name, filepath.Base(program), data)
	if err != nil {
		return fmt.Errorf("building image %q: %w", name, err)
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return fmt.Errorf("writing image %q: %w", name, err)
	}
	return nil
}

func buildImage(name, entry string, program []byte) ([]byte, error) {
	layer, err := tarOf(entry, program)
	if err != nil {
		return nil, err
	}
	a := &archive{}
	a.tar = tar.NewWriter(&a.buffer)
	layerDescriptor, err := a.blob("application/vnd.oci.image.layer.v1.tar", layer)
	if err != nil {
		return nil, err
	}
	config, err := a.document("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + entry}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerDescriptor.Digest}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := a.document("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layerDescriptor},
	})
	if err != nil {
		return nil, err
	}
	return a.finish(name, manifest)
}

// finish adds the two files by which a reader finds the manifest and knows the image's name.
func (a *archive) finish(name string, manifest descriptor) ([]byte, error) {
	manifest.Annotations = map[string]string{"io.containerd.image.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return nil, err
	}
	if err := writeFile(a.tar, "index.json", 0o644, index); err != nil {
		return nil, err
	}
	if err := writeFile(a.tar, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return nil, err
	}
	if err := a.tar.Close(); err != nil {
		return nil, err
	}
	return a.buffer.Bytes(), nil
}

func (a *archive) document(mediaType string, content any) (descriptor, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return a.blob(mediaType, data)
}

func (a *archive) blob(mediaType string, data []byte) (descriptor, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if err := writeFile(a.tar, "blobs/sha256/"+digest, 0o644, data); err != nil {
		return descriptor{}, err
	}
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: int64(len(data))}, nil
}

func tarOf(name string, data []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := writeFile(w, name, 0o755, data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func writeFile(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
