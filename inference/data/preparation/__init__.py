"""From a lab's folder, a table of samples and a file per measurement, to one file of samples."""
