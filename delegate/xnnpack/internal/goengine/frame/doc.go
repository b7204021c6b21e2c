// Package frame (no compatibility promise) is what loops work on: values, packed filters, working memory and threads.
package frame
