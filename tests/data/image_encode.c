/* image_encode.c: writes the files of image_encode.h. */
#include "image_encode.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "check.h"

/* Channel c of pixel (y, x). */
static unsigned char pixel(int y, int x, int c)
{
    return (unsigned char)((x * (5 + 2 * c) + y * (7 - c) + (x * y) / 9 + 40 * c) & 255);
}

static void encode_jpeg(FILE *f, image_flavour flavour, int height, int width)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors; /* whose errors end the program */
    int channels = flavour == JPEG_GREY ? 1 : flavour == JPEG_CMYK ? 4 : 3;
    unsigned char *row = malloc((size_t)(width * channels));

    REQUIRE(row != NULL);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_height = (JDIMENSION)height;
    c.image_width = (JDIMENSION)width;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 85, TRUE);
    if (flavour == JPEG_FULL) c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1;
    if (flavour == JPEG_PROGRESSIVE) jpeg_simple_progression(&c);
    if (flavour == JPEG_RESTART) c.restart_interval = 2;
    if (flavour == JPEG_CMYK) c.write_Adobe_marker = TRUE;
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < height; y++) {
        for (int i = 0; i < width * channels; i++) row[i] = pixel(y, i / channels, i % channels);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
}

static void encode_png(FILE *f, image_flavour flavour, int height, int width)
{
    static const int types[] = {PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE,
                                PNG_COLOR_TYPE_RGBA};
    int type = types[flavour - PNG_RGB], passes;
    int bytes = type == PNG_COLOR_TYPE_RGB ? 3 : type == PNG_COLOR_TYPE_RGBA ? 8 : 1;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    unsigned char *row = malloc((size_t)(width * bytes));

    REQUIRE(info != NULL && row != NULL);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, flavour == PNG_RGBA_16 ? 16 : 8, type,
                 flavour == PNG_GREY_INTERLACED ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        png_byte alpha[256];
        for (int i = 0; i < 256; i++) {
            palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i * 3 & 255)};
            alpha[i] = (png_byte)(i / 2);
        }
        png_set_PLTE(png, info, palette, 256);
        png_set_tRNS(png, info, alpha, 256, NULL);
    }
    png_write_info(png, info);
    passes = png_set_interlace_handling(png);
    for (int k = 0; k < passes; k++) {
        for (int y = 0; y < height; y++) {
            for (int i = 0; i < width * bytes; i++) row[i] = pixel(y, i / bytes, i % bytes);
            png_write_row(png, row);
        }
    }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(row);
}

void image_encode(const char *path, image_flavour flavour, int height, int width)
{
    FILE *f = fopen(path, "wb");

    REQUIRE(f != NULL);
    if (flavour < PNG_RGB)
        encode_jpeg(f, flavour, height, width);
    else
        encode_png(f, flavour, height, width);
    REQUIRE(fclose(f) == 0);
}
