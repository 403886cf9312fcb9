import SwaggerParser from "@apidevtools/swagger-parser";

const { paths } = await SwaggerParser.validate(process.argv[2]);
console.log(`${Object.keys(paths).length} paths`);
